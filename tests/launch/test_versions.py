"""Installed versions, read from the layouts that interpreters have."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.launch.interpreter import find_interpreter, site_packages
from ranksafe.launch.versions import installed_versions


def install(folder: Path, name: str, version: str, *, metadata: bool = True) -> Path:
    """What pip leaves behind, as far as versions go."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    if metadata:
        text = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\nVersion: 0.0.0\n"
        (info / "METADATA").write_text(text, encoding="utf-8")
    return info


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


def virtual_environment(prefix: Path, home: Path, *, system: bool = False) -> Path:
    prefix.mkdir(parents=True)
    settings = (
        f"home = {home}\ninclude-system-site-packages = {str(system).lower()}\nversion = 3.11.7\n"
    )
    (prefix / "pyvenv.cfg").write_text(settings, encoding="utf-8")
    python = prefix / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(home / "python3.11")
    return python


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The bin folder of an installation of Python 3.11 with torch 2.0."""
    install(tmp_path / "base/lib/python3.11/site-packages", "torch", "2.0.0")
    return executable(tmp_path / "base/bin/python3.11").parent


def versions(python: Path) -> dict[str, str]:
    return {name: fact.value for name, fact in installed_versions(python).items()}


def test_virtual_environment_does_not_see_its_base(tmp_path: Path, base: Path) -> None:
    install(base.parent / "lib/python3.11/site-packages", "trl", "1.0.0")
    python = virtual_environment(tmp_path / "venv", base)
    packages = tmp_path / "venv/lib/python3.11/site-packages"
    info = install(packages, "torch", "2.13.0+cpu")
    install(packages, "pytorch_lightning", "2.5.0")
    install(packages, "unrelated", "1.0")
    assert versions(python) == {"torch": "2.13.0+cpu", "pytorch-lightning": "2.5.0"}
    assert installed_versions(python)["torch"].source == str(info)


def test_virtual_environment_with_system_packages_wins_over_them(
    tmp_path: Path, base: Path
) -> None:
    python = virtual_environment(tmp_path / "venv", base, system=True)
    install(tmp_path / "venv/lib/python3.11/site-packages", "trl", "0.17.0")
    assert versions(python) == {"torch": "2.0.0", "trl": "0.17.0"}
    install(tmp_path / "venv/lib/python3.11/site-packages", "torch", "2.1.0")
    assert versions(python)["torch"] == "2.1.0"


def test_conda_environment(tmp_path: Path) -> None:
    python = executable(tmp_path / "envs/ml/bin/python")
    (tmp_path / "envs/ml/conda-meta").mkdir()
    install(tmp_path / "envs/ml/lib/python3.12/site-packages", "accelerate", "1.15.0")
    assert versions(python) == {"accelerate": "1.15.0"}


def test_windows_layout(tmp_path: Path) -> None:
    python = executable(tmp_path / "Python311/python.exe")
    install(tmp_path / "Python311/Lib/site-packages", "torch", "2.5.1")
    assert versions(python) == {"torch": "2.5.1"}


def test_the_executable_says_which_of_several_versions(tmp_path: Path) -> None:
    executable(tmp_path / "usr/bin/python3.10")
    python = executable(tmp_path / "usr/bin/python3.11")
    install(tmp_path / "usr/lib/python3.10/site-packages", "torch", "1.0")
    install(tmp_path / "usr/lib/python3.11/site-packages", "torch", "2.0")
    assert versions(python) == {"torch": "2.0"}
    link = tmp_path / "usr/bin/python3"
    link.symlink_to("python3.10")
    assert versions(link) == {"torch": "1.0"}


def test_links_into_an_installation_are_followed(tmp_path: Path, base: Path) -> None:
    link = tmp_path / "somewhere" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to(base / "python3.11")
    assert versions(link) == {"torch": "2.0.0"}


def test_pyenv_shim(tmp_path: Path) -> None:
    shim = executable(tmp_path / "pyenv/shims/python3")
    executable(tmp_path / "pyenv/versions/3.11.7/bin/python3")
    install(tmp_path / "pyenv/versions/3.11.7/lib/python3.11/site-packages", "jax", "0.10.2")
    (tmp_path / "pyenv/version").write_text("3.11.7\n", encoding="utf-8")
    assert versions(shim) == {"jax": "0.10.2"}


def test_without_metadata_the_name_says_it(tmp_path: Path, base: Path) -> None:
    packages = base.parent / "lib/python3.11/site-packages"
    install(packages, "trl", "1.16.0", metadata=False)
    egg = packages / "adapters-0.1.2-py3.11.egg-info"
    egg.write_text("Metadata-Version: 1.0\nName: adapters\nVersion: 0.1.2\n", encoding="utf-8")
    folder = packages / "peft.egg-info"
    folder.mkdir()
    (folder / "PKG-INFO").write_text("Name: peft\nVersion: 0.18.0\n", encoding="utf-8")
    assert versions(base / "python3.11") == {
        "torch": "2.0.0",
        "trl": "1.16.0",
        "adapters": "0.1.2",
        "peft": "0.18.0",
    }


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    assert site_packages(tmp_path / "gone/bin/python") == ()
    assert versions(tmp_path / "gone/bin/python") == {}


def test_the_interpreter_is_never_started(tmp_path: Path) -> None:
    python = tmp_path / "evil/bin/python"
    proof = tmp_path / "started"
    executable(python).write_text(f"#!/bin/sh\ntouch {proof}\n", encoding="utf-8")
    install(tmp_path / "evil/lib/python3.11/site-packages", "torch", "2.0")
    assert versions(python) == {"torch": "2.0"}
    assert not proof.exists()


def test_find_interpreter(tmp_path: Path, base: Path) -> None:
    inner = tmp_path / "project" / "src" / "package"
    inner.mkdir(parents=True)
    assert find_interpreter(inner, {}) is None
    own = virtual_environment(tmp_path / "project" / ".venv", base)
    assert find_interpreter(inner, {}) == own
    active = virtual_environment(tmp_path / "active", base)
    assert find_interpreter(inner, {"VIRTUAL_ENV": str(tmp_path / "active")}) == active
    assert find_interpreter(inner, {"VIRTUAL_ENV": str(tmp_path / "gone")}) == own
