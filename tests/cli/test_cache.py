"""Kept results: used while nothing they depend on has changed, and never trusted to be intact."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import ranksafe
from ranksafe.checker.registry import Registry
from ranksafe.cli.cache import rules_fingerprint

from tests.cli.conftest import DEVICE_MAP, FIXED, Call

FILES = 12


@pytest.fixture
def many(project: Path) -> Path:
    for number in range(FILES):
        (project / f"m{number}.py").write_text(DEVICE_MAP, encoding="utf-8")
    return project


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache/ranksafe/check").glob("*.json"))


def summary(out: str) -> str:
    return out.strip().splitlines()[-1]


def test_second_run_says_the_same(many: Path, call: Call, tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    first = call("check", **cache)
    assert len(kept(tmp_path)) == 1
    before = kept(tmp_path)[0].read_bytes()
    second = call("check", **cache)
    assert (second.status, second.out) == (first.status, first.out)
    assert kept(tmp_path)[0].read_bytes() == before


def test_a_changed_file_is_checked_again(many: Path, call: Call, tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    call("check", **cache)
    (many / "m3.py").write_text(FIXED, encoding="utf-8")
    assert f"Found {FILES - 1} in" in summary(call("check", **cache).out)


def test_same_size_and_a_new_time_is_noticed(many: Path, call: Call, tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    call("check", **cache)
    (many / "m3.py").write_text(DEVICE_MAP.replace('"auto"', "'none'"), encoding="utf-8")
    assert f"Found {FILES - 1} in" in summary(call("check", **cache).out)


def test_other_launch_contexts_have_other_results(many: Path, call: Call, tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    call("check", **cache)
    assert call("check", "--gpus", "1", **cache).status == 0
    assert call("check", **cache).status == 1
    assert len(kept(tmp_path)) == 2


def test_another_file_of_the_project_counts(many: Path, call: Call, tmp_path: Path) -> None:
    """A class of one file is replicated by another: the second's edit changes the first's findings."""
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    for number in range(FILES):
        (many / f"m{number}.py").unlink()
        (many / f"quiet{number}.py").write_text("import torch\n", encoding="utf-8")
    (many / "model.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.mask = torch.ones(4).cuda()\n\n"
        "    def forward(self, x):\n        return x + self.mask\n",
        encoding="utf-8",
    )
    train = many / "train.py"
    train.write_text("from model import Net\nnet = Net()\nimport torch\n", encoding="utf-8")
    assert "RS513" not in call("check", **cache).out
    train.write_text(
        "from model import Net\nfrom torch import nn\nnet = nn.DataParallel(Net())\n",
        encoding="utf-8",
    )
    assert "RS513" in call("check", **cache).out


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a": 1}', b"\xff\xfe"])
def test_a_damaged_cache_is_no_cache(
    many: Path, call: Call, tmp_path: Path, content: bytes
) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    first = call("check", **cache)
    kept(tmp_path)[0].write_bytes(content)
    assert call("check", **cache).out == first.out


def test_damaged_entries_are_no_entries(many: Path, call: Call, tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    first = call("check", **cache)
    file = kept(tmp_path)[0]
    file.write_text(
        file.read_text(encoding="utf-8").replace('"range"', '"ranges"'), encoding="utf-8"
    )
    assert call("check", **cache).out == first.out


def test_a_cache_that_cannot_be_written_is_no_error(many: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be", encoding="utf-8")
    assert call("check", XDG_CACHE_HOME=str(tmp_path / "cache")).status == 1


def test_no_cache(many: Path, call: Call, tmp_path: Path) -> None:
    call("check", "--no-cache", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    "file",
    ["rank_flow/analysis.py", "rank_flow/knowledge/functions.json", "semantics/project/index.py"],
)
def test_what_decides_findings_is_part_of_the_key(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in folders of folders: an edited checkout must not answer with what it found before."""
    copy = tmp_path / "ranksafe"
    shutil.copytree(Path(ranksafe.__file__).parent, copy, ignore=shutil.ignore_patterns("*.pyc"))
    monkeypatch.setattr(ranksafe, "__file__", str(copy / "__init__.py"))
    registry = Registry.load(entry_points=False)
    before = rules_fingerprint(registry)
    assert rules_fingerprint(registry) == before
    with (copy / file).open("a", encoding="utf-8") as edited:
        edited.write("\n")
    assert rules_fingerprint(registry) != before


def test_what_rules_share_is_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = tmp_path / "plug_shared" / "_shared" / "words.json"
    helper.parent.mkdir(parents=True)
    (tmp_path / "plug_shared" / "__init__.py").touch()
    helper.write_text("[]", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry.of_packages(["plug_shared"])
    before = rules_fingerprint(registry)
    helper.write_text("[1]", encoding="utf-8")
    assert rules_fingerprint(registry) != before


def test_a_kept_answer_imports_no_rule(many: Path, call: Call, tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPROFILEIMPORTTIME": "1"}
    of_rules = "ranksafe_rules._shared"
    assert of_rules in call("check", **cache).error
    assert of_rules not in call("check", **cache).error
