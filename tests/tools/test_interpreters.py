"""Which Pythons are looked for, and that what is found is what was asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import interpreters
import pytest

OWN = f"{sys.version_info.major}.{sys.version_info.minor}"


def test_what_the_package_declares() -> None:
    assert interpreters.supported_versions()[0] == "3.10"
    assert OWN in interpreters.supported_versions()


@pytest.mark.parametrize("behind", [f'exec {sys.executable} "$@"', "exit 1"])
def test_only_an_interpreter_that_starts_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    stand_in = tmp_path / f"python{OWN}"
    stand_in.write_text(f"#!/bin/sh\n{behind}\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert interpreters.find_python(OWN) == (stand_in if "exec" in behind else None)


def test_pyenv_keeps_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "versions" / f"{OWN}.99" / "bin" / "python"
    kept.parent.mkdir(parents=True)
    kept.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert interpreters.find_python(OWN) == kept
    assert interpreters.find_python("3.2") is None
