"""The programs that are compared."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LANGUAGE_SERVER_PATH = {"PYTHONPATH": f"{ROOT / 'server'}{os.pathsep}{ROOT / 'rules'}"}
TORCHFIX = ["torchfix==0.7.0", "libcst<1.6"]


class ToolMissing(Exception):
    """A program to compare with could not be had; the text says which."""


def ranksafe_command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ranksafe", *words]


def ruff_program() -> str:
    beside = Path(sys.executable).parent / "ruff"
    found = str(beside) if beside.exists() else shutil.which("ruff")
    if found is None:
        raise ToolMissing("ruff is not installed")
    return found


def cache_folder() -> Path:
    chosen = os.environ.get("RANKSAFE_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "ranksafe"


def torchfix_program() -> str:
    """TorchFix in an environment of its own: it needs an old libcst. Raises ToolMissing."""
    folder = cache_folder() / "torchfix"
    program = folder / "bin" / "torchfix"
    if not program.exists():
        python = folder / "bin" / "python"
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "setuptools<81", *TORCHFIX],
        ):
            if subprocess.run(command, check=False).returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                raise ToolMissing(f"TorchFix could not be installed ({' '.join(TORCHFIX)})")
    return str(program)


def torch_python() -> Path:
    """The interpreter with torch and transformers. Raises ToolMissing."""
    chosen = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if chosen:
        return Path(chosen)
    environments = ROOT / "tools" / "environments.py"
    done = subprocess.run(
        [sys.executable, str(environments), "torch"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise ToolMissing("the environment with torch could not be made")
    return Path(done.stdout.split()[-1])
