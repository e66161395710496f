"""The Python versions that ranksafe supports, and where this machine has them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from environments import ROOT

_SUPPORTED = re.compile(r'"Programming Language :: Python :: (\d+\.\d+)"')
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def supported_versions() -> list[str]:
    """As the package declares them, lowest first."""
    return _SUPPORTED.findall((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def find_python(version: str) -> Path | None:
    """An interpreter of that version: on PATH, or where pyenv or uv keeps it."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    kept = sorted(pyenv.glob(f"{version}.*/bin/python"))
    on_path = shutil.which(f"python{version}")
    named = [Path(on_path)] if on_path else []
    return next((each for each in (*named, *kept, *_of_uv(version)) if _is(each, version)), None)


def _of_uv(version: str) -> list[Path]:
    uv = shutil.which("uv")
    return [Path(line) for line in _said([uv, "python", "find", "--system", version])] if uv else []


def _is(python: Path, version: str) -> bool:
    """Whether it can be started; pyenv's stand-ins on PATH may have nothing behind them."""
    return _said([str(python), "-c", _VERSION]) == [version]


def _said(command: list[str]) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
