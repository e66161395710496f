"""Python environments for development: ``.venv`` in the checkout, and one with torch in the cache.

The server and its tests never see torch; runs and proofs start the interpreter of the second environment. Run as a
script it makes an environment and prints the path of its interpreter:

    python tools/environments.py project | torch | torch-run | jupyterlab
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TORCH = "2.13.0"
RUN_PACKAGES = [f"torch=={TORCH}", "accelerate==1.15.0", "numpy"]
TEST_PACKAGES = [*RUN_PACKAGES, "transformers==5.23.0", "trl==1.16.0", "debugpy==1.8.22"]
CUDA_TORCH = "2.15.0"
PURE_PYTHON_NEEDS = [
    "filelock",
    "typing-extensions",
    "sympy",
    "networkx",
    "jinja2",
    "fsspec",
    "numpy",
]
RELEASE_PACKAGES = [
    "build==1.6.1",
    "cyclonedx-bom==7.5.0",
    "hatch-fancy-pypi-readme==25.1.0",
    "hatchling==1.33.0",
    "in-toto-attestation==0.9.3",
    "twine==7.0.0",
]

JUPYTERLAB = "4.6.6"
JUPYTERLAB_LSP = "5.3.0"


class SetUpError(Exception):
    """Something the set-up needs is missing; the text says what to do."""


def cache_folder() -> Path:
    """Where environments and downloads are kept between runs: RANKSAFE_CACHE, else ``ranksafe`` in the user's cache."""
    chosen = os.environ.get("RANKSAFE_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ranksafe"


def project_environment(*, development: bool) -> Path:
    """The interpreter of ``.venv``, with ranksafe installed from the checkout; made or brought up to date if needed."""
    folder = ROOT / ".venv"
    wanted = f"{ROOT}[dev]" if development else str(ROOT)
    python = _virtual_environment(folder)
    stamp = _stamp([(ROOT / "pyproject.toml").read_text(encoding="utf-8"), str(ROOT), sys.version])
    done = {
        folder / f".set-up-{kind}-{stamp}" for kind in (["dev"] if development else ["dev", "run"])
    }
    if not any(mark.exists() for mark in done):
        say(f"installing ranksafe{' and its development tools' if development else ''} into .venv")
        pip(python, ["install", "--quiet", "--editable", wanted])
        (folder / f".set-up-{'dev' if development else 'run'}-{stamp}").touch()
    return python


def other_environment(base: Path, version: str) -> Path:
    """The interpreter of an environment in the cache that is made with ``base``, a Python of that version."""
    folder = cache_folder() / f"checks-python{version}"
    python = _virtual_environment(folder, base)
    stamp = _stamp([(ROOT / "pyproject.toml").read_text(encoding="utf-8"), str(ROOT)])
    done = folder / f".set-up-{stamp}"
    if not done.exists():
        say(
            f"installing ranksafe and its development tools for Python {version} (kept in {folder})"
        )
        pip(python, ["install", "--quiet", "--editable", f"{ROOT}[dev]"])
        done.touch()
    return python


def torch_environment(*, for_tests: bool = True) -> Path:
    """The interpreter of the environment with torch in the cache; without ``for_tests`` only what a run needs."""
    packages = TEST_PACKAGES if for_tests else RUN_PACKAGES
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache_folder() / f"torch-{TORCH}-python{version}"
    python = _virtual_environment(folder)
    stamps = [folder / f".set-up-{_stamp(kind)}" for kind in (TEST_PACKAGES, packages)]
    if not any(stamp.exists() for stamp in stamps):
        torch = _torch_that_is_served(python)
        download = "200 MB" if torch.endswith("+cpu") else "up to 3 GB with its CUDA libraries"
        say(f"installing {', '.join(packages)} (once, {download} to download; kept in {folder})")
        pip(python, ["install", *_silence(), torch])
        pip(python, ["install", "--quiet", *packages])
        stamps[-1].touch()
    return python


def cuda_build_environment() -> Path:
    """The interpreter of an environment with PyPI's torch, a CUDA build, without the gigabytes of CUDA libraries."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache_folder() / f"torch-cuda-{CUDA_TORCH}-python{version}"
    python = _virtual_environment(folder)
    done = folder / f".set-up-{_stamp([CUDA_TORCH, *PURE_PYTHON_NEEDS])}"
    if not done.exists():
        say(f"installing torch {CUDA_TORCH} (once, 540 MB; kept in {folder})")
        pip(python, ["install", "--quiet", "--no-deps", f"torch=={CUDA_TORCH}"])
        pip(python, ["install", "--quiet", *PURE_PYTHON_NEEDS])
        done.touch()
    return python


def release_environment() -> Path:
    """The interpreter of an environment in the cache with what builds and describes a release."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache_folder() / f"release-python{version}"
    python = _virtual_environment(folder)
    done = folder / f".set-up-{_stamp(RELEASE_PACKAGES)}"
    if not done.exists():
        say(f"installing what builds a release (once; kept in {folder})")
        pip(python, ["install", "--quiet", *RELEASE_PACKAGES])
        done.touch()
    return python


def jupyterlab_environment() -> Path:
    """The interpreter of an environment in the cache with JupyterLab and its language server extension."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    packages = [f"jupyterlab=={JUPYTERLAB}", f"jupyterlab-lsp=={JUPYTERLAB_LSP}"]
    folder = cache_folder() / f"jupyterlab-{JUPYTERLAB}-python{version}"
    python = _virtual_environment(folder)
    done = folder / f".set-up-{_stamp(packages)}"
    if not done.exists():
        say(f"installing {' and '.join(packages)} (once, 60 MB; kept in {folder})")
        pip(python, ["install", "--quiet", *packages])
        done.touch()
    return python


def pip(python: Path, arguments: list[str], *, attempts: int = 2) -> None:
    """Run pip; once more after a pause, since most failures here are the network's. Raises SetUpError."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    for attempt in range(attempts):
        if subprocess.run(command, check=False).returncode == 0:
            return
        if attempt + 1 < attempts:
            say("pip failed; trying once more")
            time.sleep(5)
    raise SetUpError(f"pip failed: {' '.join(command)}")


def say(text: str) -> None:
    """Tell what is going on, on stderr: stdout belongs to results."""
    print(f"==> {text}", file=sys.stderr, flush=True)


def _torch_that_is_served(python: Path) -> str:
    """The CPU build where the indexes that pip is set up with have it, else what they have; no other one is asked."""
    build = f"torch=={TORCH}+cpu"
    ask = [str(python), "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps", build]
    is_served = subprocess.run(ask, capture_output=True, check=False).returncode == 0
    return build if is_served else f"torch=={TORCH}"


def _silence() -> list[str]:
    """pip's progress bar is for people, and comes only with all else that it says."""
    return [] if sys.stderr.isatty() else ["--quiet"]


def _virtual_environment(folder: Path, base: Path = Path(sys.executable)) -> Path:
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if _works(python):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = subprocess.run([str(base), "-m", "venv", str(folder)], check=False)
    if made.returncode != 0:
        raise SetUpError(
            f"{base} cannot make a virtual environment; on Debian and Ubuntu: "
            "apt-get install python3-venv"
        )
    return python


def _works(python: Path) -> bool:
    """A virtual environment whose base Python was removed or moved is still there, but dead."""
    if not python.exists():
        return False
    return (
        subprocess.run(
            [str(python), "-m", "pip", "--version"], capture_output=True, check=False
        ).returncode
        == 0
    )


def _stamp(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def main(words: list[str]) -> int:
    makers = {
        "project": lambda: project_environment(development=True),
        "project-run": lambda: project_environment(development=False),
        "torch": lambda: torch_environment(for_tests=True),
        "torch-run": lambda: torch_environment(for_tests=False),
        "jupyterlab": jupyterlab_environment,
    }
    if len(words) != 1 or words[0] not in makers:
        say(f"usage: environments.py {' | '.join(makers)}")
        return 2
    try:
        print(makers[words[0]]())
    except SetUpError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
