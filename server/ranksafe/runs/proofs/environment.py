"""Library versions for a proof: an overlay folder that stands before the environment's packages on PYTHONPATH.

The user's environment is never changed. pip's own resolver says, as a dry run inside that environment, which packages
the requirements need beyond or instead of what is installed (an old transformers needs an old tokenizers); exactly
those go, without dependencies, into a folder outside the project. torch always stays the environment's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ranksafe.localization import Translated

_KEPT = ("torch", "accelerate", "datasets", "numpy", "peft")
"""Given to the resolver as roots: transformers imports them where they are installed, and an old transformers brings an
old huggingface_hub that a new accelerate or datasets cannot use."""
_COMPLETE = ".complete"
_TIMEOUT_SECONDS = 900.0
_installing = threading.Lock()
"""A failing program and its fixed twin want the same overlay, perhaps at once; so may other processes, see `_alone`."""


class OverlayError(Exception):
    """The requirements could not be installed; ``explanation`` says why, in both languages."""

    def __init__(self, explanation: Translated) -> None:
        super().__init__(explanation.en)
        self.explanation = explanation


def cache_directory() -> Path:
    """Where overlays are kept: RANKSAFE_CACHE, else the user's cache folder."""
    if chosen := os.environ.get("RANKSAFE_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "ranksafe"


def overlay_for(
    requirements: Sequence[str],
    interpreter: Path,
    on_progress: Callable[[Translated], None],
) -> Path | None:
    """The folder that gives ``interpreter`` the ``requirements``, or None when it has them already.

    Made once and kept. Raises OverlayError when pip cannot find or install them.
    """
    if not requirements:
        return None
    folder = cache_directory() / "overlays" / _key(requirements, interpreter)
    marker = folder / _COMPLETE
    if not marker.is_file():
        with _installing, _alone(folder.parent):
            if not marker.is_file():
                on_progress(
                    Translated(
                        "preparing {requirements} (once; kept in {folder})",
                        "正在准备 {requirements}（仅需一次，保存在 {folder}）",
                    ).filled(requirements=" ".join(requirements), folder=folder)
                )
                _install(requirements, interpreter, folder)
    return folder if marker.read_text(encoding="utf-8").strip() else None


@contextlib.contextmanager
def _alone(overlays: Path) -> Iterator[None]:
    """Keep other processes out. The system frees the lock when its holder dies; on Windows there is none."""
    overlays.mkdir(parents=True, exist_ok=True)
    with (overlays / ".lock").open("w") as lock:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _key(requirements: Sequence[str], interpreter: Path) -> str:
    """Different interpreters may need different wheels, so their environment is part of the name."""
    environment = str(interpreter.parent.absolute())
    digest = hashlib.sha256("\n".join([*sorted(requirements), *_KEPT, environment]).encode())
    readable = "-".join(sorted(requirements))
    safe = "".join(c if c.isalnum() or c in ".-" else "_" for c in readable)[:60]
    return f"{safe}-{digest.hexdigest()[:10]}"


def _install(requirements: Sequence[str], interpreter: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as name:
        new = Path(name) / "overlay"
        new.mkdir()
        packages = _missing_packages(requirements, interpreter, Path(name))
        if packages:
            _pip(interpreter, ["install", "--quiet", "--no-deps", "--target", str(new), *packages])
        (new / _COMPLETE).write_text("\n".join(packages), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)


def _missing_packages(requirements: Sequence[str], interpreter: Path, scratch: Path) -> list[str]:
    report = scratch / "report.json"
    installed = _installed_versions(interpreter)
    kept = [
        f"torch=={installed['torch']}" if name == "torch" else name
        for name in _KEPT
        if name in installed and not any(item.startswith(name) for item in requirements)
    ]
    _pip(
        interpreter,
        ["install", "--quiet", "--dry-run", "--report", str(report), *requirements, *kept],
    )
    plan = json.loads(report.read_text(encoding="utf-8"))
    return [
        f"{item['metadata']['name']}=={item['metadata']['version']}" for item in plan["install"]
    ]


def _installed_versions(interpreter: Path) -> dict[str, str]:
    listing = json.loads(_pip(interpreter, ["list", "--format", "json"]))
    return {item["name"].lower(): item["version"] for item in listing}


def _pip(interpreter: Path, arguments: Sequence[str]) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            [str(interpreter), "-m", "pip", "--disable-pip-version-check", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(str(error)) from error
    if done.returncode != 0:
        raise _failed(done.stderr.strip() or done.stdout.strip())
    return done.stdout


def _failed(reason: str) -> OverlayError:
    lines = [line for line in reason.splitlines() if not line.startswith("WARNING")]
    return OverlayError(
        Translated(
            "pip could not provide the proof's library versions: {reason}",
            "pip 无法提供证明所需的库版本：{reason}",
        ).filled(reason="\n".join(lines[-8:]))
    )
