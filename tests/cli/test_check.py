"""``ranksafe check``: what it prints, what it returns, what it refuses."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import DEVICE_MAP, FIXED, ROOT, Call


def test_text_shows_the_line_and_the_related_place(project: Path, call: Call) -> None:
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    answer = call("check", "train.py")
    assert answer.status == 1
    lines = answer.out.splitlines()
    assert lines[0].startswith("train.py:5:70: warning[RS201] ")
    assert lines[1].endswith('device_map="auto")')
    marked = lines[2].index("^")
    assert lines[1][marked : marked + lines[2].count("^")] == '"auto"'
    assert "train.py:6:" in answer.out
    assert "\x1b" not in answer.out


def test_a_related_place_in_another_file_is_named_like_the_first(project: Path, call: Call) -> None:
    (project / "metrics.py").write_text(
        "import torch.distributed as dist\n\n\ndef log(x):\n    dist.all_reduce(x)\n"
    )
    (project / "guarded.py").write_text(
        "import torch.distributed as dist\n\nfrom metrics import log\n\n\n"
        "def report(x):\n    if dist.get_rank() == 0:\n        log(x)\n    dist.barrier()\n"
    )
    answer = call("check", "guarded.py", "--gpus", "2", "--launcher", "torchrun")
    assert "\nmetrics.py:" in answer.out.replace("\n  ", "\n")
    assert str(project) not in answer.out


def test_no_place_is_named_for_a_constant_of_another_file(project: Path, call: Call) -> None:
    (project / "where.py").write_text('WHERE = "auto"\n')
    (project / "loads.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer\n\nfrom where import WHERE\n\n"
        'model = AutoModelForCausalLM.from_pretrained("gpt2", device_map=WHERE)\n'
        "Trainer(model=model).train()\n"
    )
    answer = call("check", "loads.py", "--gpus", "2", "--launcher", "torchrun")
    assert "[RS201]" in answer.out
    assert "is chosen here" not in answer.out


def test_colours_on_demand(project: Path, call: Call) -> None:
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    assert "\x1b[1;33m" in call("check", "--color", "always").out
    assert "\x1b[" in call("check", FORCE_COLOR="1").out
    assert "\x1b[" not in call("check", FORCE_COLOR="1", NO_COLOR="1").out


def test_marks_stand_under_wide_characters(project: Path, call: Call) -> None:
    text = DEVICE_MAP.replace('"org/model"', '"模型🤗"')
    (project / "train.py").write_text(text, encoding="utf-8")
    lines = call("check").out.splitlines()
    # Two Chinese characters and an emoji take six cells, three characters more than they are.
    assert lines[2].index("^") == lines[1].index('"auto"') + 3


def test_json_has_the_shape_that_ruff_has(project: Path, call: Call) -> None:
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    answer = call("check", "--output-format", "json", "--launcher", "accelerate")
    assert answer.status == 1
    (finding,) = json.loads(answer.out)
    assert set(finding) == {
        "code", "name", "level", "message", "filename", "cell", "location", "end_location",
        "fix", "related", "url",
    }  # fmt: skip
    assert finding["code"] == "RS201"
    assert finding["name"] == "device-map-in-distributed-training"
    assert finding["level"] == "warning"
    assert finding["filename"] == str(project / "train.py")
    assert finding["cell"] is None
    assert finding["location"] == {"row": 5, "column": 70}
    assert finding["end_location"] == {"row": 5, "column": 76}
    fix = finding["fix"]
    assert fix["applicability"] in ("safe", "unsafe")
    (edit,) = fix["edits"]
    row = DEVICE_MAP.splitlines()[4]
    start, end = edit["location"]["column"] - 1, edit["end_location"]["column"] - 1
    assert row[:start] + edit["content"] + row[end:] == FIXED.splitlines()[4]
    assert finding["related"][0]["location"]["row"] == 6
    assert finding["related"][0]["cell"] is None


def test_what_is_assumed_of_the_launch_is_told(project: Path, call: Call) -> None:
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    out = call("check").out
    assert "plain `python` is assumed" in out
    assert "2 are assumed" in out
    known = call("check", "--gpus", "4", "--launcher", "accelerate").out
    assert "assumed" not in known
    assert "假定为 2 个" in call("check", "--launcher", "torchrun", "--lang", "zh-cn").out
    (project / "train.py").write_text(FIXED, encoding="utf-8")
    assert call("check").out == "Nothing found in 1 file.\n"


def test_json_of_nothing(project: Path, call: Call) -> None:
    (project / "train.py").write_text(FIXED, encoding="utf-8")
    answer = call("check", "--output-format", "json")
    assert (answer.status, json.loads(answer.out)) == (0, [])


def test_github_annotations(project: Path, call: Call) -> None:
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    out = call("check", "--output-format", "github").out
    assert out.startswith("::warning title=ranksafe (RS201),file=train.py,line=5,col=70,")
    assert out.count("\n") == 1


def test_a_code_quality_report_of_gitlab(project: Path, call: Call) -> None:
    twice = DEVICE_MAP + DEVICE_MAP.split("\n", 2)[2]
    (project / "train.py").write_text(twice, encoding="utf-8")
    first, second = json.loads(call("check", "--output-format", "gitlab").out)
    assert first["location"] == {"path": "train.py", "lines": {"begin": 5}}
    assert (first["check_name"], first["severity"]) == ("RS201", "major")
    assert first["description"] == second["description"]
    assert first["fingerprint"] != second["fingerprint"]
    (project / "train.py").write_text("# moved\n" + twice, encoding="utf-8")
    absolute = call("check", "--output-format", "gitlab", "--lang", "zh-cn", str(project)).out
    moved = json.loads(absolute)
    assert moved[0]["location"] == {"path": "train.py", "lines": {"begin": 6}}
    assert [item["fingerprint"] for item in moved] == [
        item["fingerprint"] for item in (first, second)
    ]


def test_sarif(project: Path, call: Call) -> None:
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    log = json.loads(call("check", "--output-format", "sarif").out)
    (run,) = log["runs"]
    (result,) = run["results"]
    assert log["version"] == "2.1.0"
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "train.py"
    assert location["region"]["startLine"] == 5


def test_chinese(project: Path, call: Call) -> None:
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    assert "警告[RS201]" in call("check", "--lang", "zh-cn").out
    assert "警告[RS201]" in call("check", LANG="zh_CN.UTF-8").out
    assert "warning[RS201]" in call("check", "--lang", "en", LANG="zh_CN.UTF-8").out


def test_standard_input_under_a_name(project: Path, call: Call) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.ranksafe]\nper-file-ignores = { "quiet.py" = ["RS2"] }', encoding="utf-8"
    )
    loud = call("check", "-", "--stdin-filename", "loud.py", given=DEVICE_MAP)
    assert (loud.status, loud.out[:12]) == (1, "loud.py:5:70")
    assert call("check", "-", "--stdin-filename", "quiet.py", given=DEVICE_MAP).status == 0


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ((), 1),
        (("--fail-on", "error"), 0),
        (("--fail-on", "information"), 1),
        (("--exit-zero",), 0),
        (("--ignore", "RS2"), 0),
        (("--select", "RS5,RS3"), 0),
        (("--select", "device-map-in-distributed-training"), 1),
        (("--gpus", "1"), 0),
    ],
)
def test_status(project: Path, call: Call, words: tuple[str, ...], status: int) -> None:
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    assert call("check", *words).status == status


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gone.py",), "gone.py: no such file"),
        (("--select", "RS77"), "no rule fits `RS77`"),
        (("--assume", "transformers>4"), "NAME==VERSION"),
        (("--config", "gone.toml"), "no such configuration file"),
        (("--gpus", "0"), "0 is less than 1"),
        (("--launcher", "slurm"), "invalid choice"),
        (("-", "train.py"), "cannot be combined"),
    ],
)
def test_used_wrongly(project: Path, call: Call, words: tuple[str, ...], said: str) -> None:
    answer = call("check", *words)
    assert answer.status == 2
    assert said in answer.error


def test_broken_configuration(project: Path, call: Call) -> None:
    (project / "ranksafe.toml").write_text("gpus = = 2", encoding="utf-8")
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    answer = call("check")
    assert answer.status == 2
    assert "ranksafe.toml:1: is not valid TOML" in answer.error


def test_configuration_with_one_bad_key_is_used(project: Path, call: Call) -> None:
    (project / "ranksafe.toml").write_text('ignore = ["RS2"]\nsurprise = 1', encoding="utf-8")
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    answer = call("check")
    assert answer.status == 0
    assert "unknown key `surprise`" in answer.error


def _install_transformers(project: Path, version: str) -> None:
    """Into an environment of the project, as far as it is read."""
    packages = project / f".venv/lib/python3.11/site-packages/transformers-{version}.dist-info"
    packages.mkdir(parents=True)
    (packages / "METADATA").write_text(
        f"Name: transformers\nVersion: {version}\n", encoding="utf-8"
    )
    (project / ".venv/pyvenv.cfg").write_text("home = /usr/bin\n", encoding="utf-8")
    (project / ".venv/bin").mkdir()
    (project / ".venv/bin/python").touch()


def test_versions_of_the_projects_environment(project: Path, call: Call) -> None:
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    _install_transformers(project, "4.51.3")
    assert "4.51.3" in call("check", "--launcher", "accelerate").out
    # As pre-commit starts it: the active environment is that of ranksafe, without torch.
    active = call("check", "--launcher", "accelerate", VIRTUAL_ENV=sys.prefix)
    assert "4.51.3" in active.out
    assert (
        "4.52.0"
        in call("check", "--launcher", "accelerate", "--assume", "transformers==4.52.0").out
    )


def test_a_version_that_the_project_asks_for(project: Path, call: Call) -> None:
    script = project / "examples/audio/train.py"
    script.parent.mkdir(parents=True)
    script.write_text(DEVICE_MAP, encoding="utf-8")
    (project / "requirements.txt").write_text("transformers==4.51.3\n", encoding="utf-8")
    assert "4.51.3" in call("check", "--launcher", "accelerate").out
    assert (
        "4.52.0"
        in call("check", "--launcher", "accelerate", "--assume", "transformers==4.52.0").out
    )
    _install_transformers(project, "4.50.0")
    assert "4.51.3" not in call("check", "--launcher", "accelerate").out


@pytest.mark.parametrize("named", [".", "examples"])
def test_a_version_that_the_repository_asks_for(project: Path, call: Call, named: str) -> None:
    (project / ".git").mkdir()
    part = project / "examples/audio"
    part.mkdir(parents=True)
    (part / "setup.py").touch()
    (part / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    (project / "requirements.txt").write_text("transformers==4.51.3\n", encoding="utf-8")
    assert "4.51.3" in call("check", "--launcher", "accelerate", named).out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"import torch\0", "not a text file"),
        (b"# coding: no-such\nimport torch\n", "encoding declaration"),
        (b'import torch\nx = "\xff"\n', "byte 18 is not valid utf-8"),
        (b"import torch\n" + b"#" * (9 * 1024 * 1024), "larger than 8 MiB"),
    ],
    ids=["binary", "unknown encoding", "undecodable", "huge"],
)
def test_what_cannot_be_read_is_said(project: Path, call: Call, content: bytes, said: str) -> None:
    (project / "odd.py").write_bytes(content)
    named = call("check", "odd.py")
    assert named.status == 2
    assert said in named.error
    found = call("check")
    assert found.status == 0
    assert said in found.error


def test_other_encodings(project: Path, call: Call) -> None:
    text = DEVICE_MAP.replace("org/model", "模型")
    (project / "gbk.py").write_bytes(f"# -*- coding: gbk -*-\n{text}".encode("gbk"))
    (project / "bom.py").write_bytes(b"\xef\xbb\xbf" + text.encode())
    out = call("check").out
    assert "bom.py:5:63" in out
    assert "gbk.py:6:63" in out
    assert "模型" in out


LONG = "import torch.distributed as dist\n\n\ndef long(x):\n" + "    dist.all_reduce(x)\n" * 3001
"""More statements than rank flow follows."""


def test_a_function_that_is_too_long_to_be_followed_is_named(project: Path, call: Call) -> None:
    (project / "train.py").write_text(LONG, encoding="utf-8")
    for _ in range(2):  # the second time from the cache
        answer = call("check", "train.py")
        assert answer.status == 0
        assert answer.error.count("`long` does too much to be followed") == 1
    (project / "train.py").write_text(LONG.replace("dist.all_reduce(x)", "x += 1"))
    assert "too much" not in call("check", "train.py").error


def test_a_rule_that_breaks_is_named_and_is_not_taken_for_a_clean_file(
    project: Path, tmp_path: Path, call: Call
) -> None:
    for number in range(10):  # so many that results are kept
        (project / f"train{number}.py").write_text(DEVICE_MAP, encoding="utf-8")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/sitecustomize.py").write_text(BROKEN_RULE, encoding="utf-8")
    folders = [str(tmp_path / "broken"), str(ROOT / "server"), str(ROOT / "rules")]
    for _ in range(2):
        answer = call("check", PYTHONPATH=os.pathsep.join(folders))
        assert answer.status == 2
        assert (
            "Nothing found in 10 files. Not checked: 10 files by some of the rules." in answer.out
        )
        assert answer.error.count("not checked by RS201") == 10
        assert "ValueError: no such node (" in answer.error
    assert call("check").out.count("[RS201]") == 10


BROKEN_RULE = """
import ranksafe_rules.devices.device_map_in_distributed_training.rule as rule


def check(*_):
    raise ValueError("no such node")


rule.DeviceMapInDistributedTraining.check = check
"""


def test_folders_of_others_are_left_out(project: Path, call: Call) -> None:
    for folder in (".venv/lib", "node_modules", "generated", "src"):
        (project / folder).mkdir(parents=True)
        (project / folder / "a.py").write_text(DEVICE_MAP, encoding="utf-8")
    (project / "ranksafe.toml").write_text('exclude = ["generated"]', encoding="utf-8")
    found = {line.split(":")[0] for line in call("check").out.splitlines() if "[RS201]" in line}
    assert found == {"src/a.py"}
    assert call("check", "generated/a.py").status == 1


@pytest.mark.parametrize("command", ["check", "fix"])
def test_excluded_files_that_are_named(project: Path, call: Call, command: str) -> None:
    files = ("src/a.py", "generated/deep/a.py", "node_modules/a.py")
    for name in files:
        (project / name).parent.mkdir(parents=True)
        (project / name).write_text(DEVICE_MAP, encoding="utf-8")
    (project / "ranksafe.toml").write_text('exclude = ["generated"]', encoding="utf-8")
    left_out = call(command, "--force-exclude", *files[1:], str(project / files[1]))
    assert (left_out.status, DEVICE_MAP) == (0, (project / files[1]).read_text())
    for name in files:
        wanted = 1 if name == files[0] else 0
        assert call(command, "--force-exclude", name).status == wanted
        assert call(command, name).status == 1


def test_add_ignore_silences_every_finding_and_nothing_else(project: Path, call: Call) -> None:
    file = project / "train.py"
    file.write_bytes(DEVICE_MAP.replace("\n", "\r\n").encode())
    assert "Suppressions added: 1" in call("check", "--add-ignore").out
    line = file.read_bytes().split(b"\r\n")[4]
    assert line.endswith(b'device_map="auto")  # ranksafe: ignore[RS201]')
    assert call("check", "--fail-on", "information").status == 0


def test_many_files_in_parallel_are_the_same_as_one_by_one(project: Path, call: Call) -> None:
    for number in range(45):
        text = DEVICE_MAP if number % 3 else FIXED
        (project / f"m{number:02}.py").write_text(text, encoding="utf-8")
    together = json.loads(call("check", "--output-format", "json", "--no-cache").out)
    assert [Path(item["filename"]).name for item in together] == [
        f"m{number:02}.py" for number in range(45) if number % 3
    ]
    single = json.loads(call("check", "m01.py", "--output-format", "json").out)
    assert together[0] == single[0]
