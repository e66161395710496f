from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.launch.pins import pinned_versions


def _pins(folder: Path, root: Path | None = None) -> dict[str, str]:
    found = pinned_versions(folder, folder if root is None else root)
    return {name: fact.value for name, fact in found.items()}


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("transformers==4.39.3", "4.39.3"),
        ("Transformers[torch] == 4.39.3  # as in the paper", "4.39.3"),
        ("transformers==4.39.3 --hash=sha256:00", "4.39.3"),
        ("transformers==4.39.3 ; sys_platform == 'linux'", "4.39.3"),
        ("transformers===4.39.3", "4.39.3"),
        ("transformers>=5.3.0,<5.4.0", "5.3.0"),
        ("transformers~=4.46.1", "4.46.1"),
        ("transformers==4.46.*", "4.46"),
        ("transformers<4.48,>=4.47.1", "4.47.1"),
        ("transformers~=4.46", None),
        ("transformers>=4.46", None),
        ("transformers<5", None),
        ("transformers>=4.46.0,!=4.47.0,<6", None),
        ("transformers", None),
        ("transformers @ git+https://example.org/transformers", None),
        ("# transformers==4.39.3", None),
        ("-r transformers==4.39.3", None),
        ("transformers==", None),
        (f"transformers=={'9' * 10_000}", None),
        (f"transformers>=4.{'9' * 150}", None),
        (f"transformers==4.39.3; {'(' * 5_000}", "4.39.3"),
        ("transformers==4.39.3\ntransformers==4.40.0", None),
        ("transformers==4.39.3\ntransformers==4.39.3", "4.39.3"),
    ],
)
def test_a_line_of_requirements(tmp_path: Path, line: str, version: str | None) -> None:
    (tmp_path / "requirements.txt").write_text(f"requests==2.0\n{line}\n")
    assert _pins(tmp_path) == ({} if version is None else {"transformers": version})


def test_the_source_is_the_file(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.13.1+cu117\n")
    fact = pinned_versions(tmp_path, tmp_path)["torch"]
    assert (fact.value, fact.source) == ("1.13.1+cu117", str(tmp_path / "requirements.txt"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[project]\ndependencies = ["transformers>=5.3.0,<5.4.0", "trl>=1.0,<2.0"]\n',
            {"transformers": "5.3.0"},
        ),
        ('[project]\ndependencies = "transformers==4.39.3"\n', {}),
        ("[project]\ndependencies = [4]\n", {}),
        ("project = 1\n", {}),
        ("[project\n", {}),
    ],
)
def test_pyproject(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert _pins(tmp_path) == expected


def test_the_nearest_file_that_names_a_library_decides(tmp_path: Path) -> None:
    inner = tmp_path / "examples" / "audio"
    inner.mkdir(parents=True)
    outside = "torch==1.0.0\n"
    (tmp_path / "requirements.txt").write_text(outside)
    root = tmp_path / "examples"
    (root / "requirements.txt").write_text("transformers==4.39.3\ntrl==0.9.6\npeft==0.11.1\n")
    (inner / "requirements.txt").write_text("transformers==4.41.0\npeft>=0.10\n")
    (inner / "pyproject.toml").write_text('[project]\ndependencies = ["transformers>=4"]\n')
    assert _pins(inner, root) == {"transformers": "4.41.0", "trl": "0.9.6"}
    assert _pins(inner, tmp_path)["torch"] == "1.0.0"
    assert _pins(inner, tmp_path / "elsewhere") == {"transformers": "4.41.0"}
