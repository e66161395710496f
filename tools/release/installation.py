"""The wheel in a fresh environment, used as a newcomer does."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from environments import SetUpError, cache_folder, pip, say
from interpreters import find_python, supported_versions

from release.artefact import Complaints

EXAMPLE = """\
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("org/model", device_map="auto")
model = Accelerator().prepare(model)
"""
"""RS201 on line 4."""
_PROGRAMS = "Scripts" if os.name == "nt" else "bin"


def lowest_and_newest() -> dict[str, Path]:
    """Of the supported Pythons that are here. Raises SetUpError without any."""
    found = {version: find_python(version) for version in supported_versions()}
    here = [(version, python) for version, python in found.items() if python is not None]
    if not here:
        raise SetUpError(f"none of Python {', '.join(found)} was found")
    return dict([here[0], here[-1]])


def install(wheel: Path, python: Path, folder: Path, installer: Path) -> None:
    """Make an environment in ``folder`` with the wheel and its libraries, and no pip, which would be in the SBOM.

    The wheel comes from its own folder, the libraries from a cache that is filled once. Raises CalledProcessError and
    SetUpError.
    """
    subprocess.run([str(python), "-m", "venv", "--without-pip", str(folder)], check=True)
    into = ["--python", str(folder / _PROGRAMS / "python"), "--quiet"]
    version = wheel.name.split("-")[1]
    libraries = cache_folder() / f"release-wheels-{folder.name}"
    local = ["--no-index", "--find-links", str(libraries), "--find-links", str(wheel.parent)]
    wanted = [*into, "install", "--only-binary=:all:", *local, f"ranksafe=={version}"]
    known = [str(installer), "-m", "pip", "--disable-pip-version-check", *wanted]
    if subprocess.run(known, check=False, capture_output=True).returncode == 0:
        return
    say(f"downloading the libraries that ranksafe needs (once; kept in {libraries})")
    goal = ["--only-binary=:all:", "--dest", str(libraries)]
    pip(installer, [*into, "download", *goal, str(wheel)])
    # A copy of the wheel would be found before the one that is tried.
    (libraries / wheel.name).unlink()
    subprocess.run(known, check=True)


def misbehaviour(folder: Path, version: str, environment: dict[str, str]) -> Complaints:
    """What is wrong with ``ranksafe --version`` and ``ranksafe check`` in an environment."""
    program = folder / _PROGRAMS / "ranksafe"
    (folder / "train.py").write_text(EXAMPLE, encoding="utf-8")

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    said = ask("--version")
    if version not in said.stdout.split():
        yield f"--version says {said.stdout or said.stderr}"
    done = ask("check", "--no-cache", "--output-format", "json", "train.py")
    found = json.loads(done.stdout) if done.returncode == 1 else []
    if [(each["code"], each["location"]["row"]) for each in found] != [("RS201", 4)]:
        yield f"check ended with {done.returncode} and found {done.stdout} {done.stderr}"
