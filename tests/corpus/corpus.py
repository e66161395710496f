"""Real code that ranksafe is run over, and what it found there.

    python tests/corpus/corpus.py update {installed|downloaded}

writes the snapshot anew: read every new line, and either write down in ``judgement`` why it is right, or mend the rule.
Needs RANKSAFE_TEST_TORCH_PYTHON for the installed libraries.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
IDENTITY = ("package", "file", "line", "code", "level")


@dataclass(frozen=True)
class Package:
    """One library: ``folder`` in site-packages or in the wheel, without the folders in ``without``."""

    requirement: str
    folder: str
    without: tuple[str, ...] = ()


INSTALLED = (
    Package("accelerate==1.15.0", "accelerate"),
    Package("trl==1.16.0", "trl"),
    # Model definitions are four fifths of it, and no program of anybody's.
    Package("transformers==5.23.0", "transformers", without=("models",)),
    Package("torch==2.13.0", "torch/distributed"),
)
DOWNLOADED = (
    Package("trl==0.7.4", "trl"),
    Package("adapters==1.3.0", "adapters"),
    Package("llamafactory==0.9.5", "llamafactory"),
    Package("open_clip_torch==3.3.0", "open_clip_train"),
    Package("timm==1.0.31", "timm"),
)
CORPORA = {"installed": INSTALLED, "downloaded": DOWNLOADED}


def gather(name: str, torch_python: Path, target: Path) -> int:
    """Copy a corpus's Python files to ``target``; the number of its lines.

    Copies, because ranksafe leaves out site-packages and reads configuration files above a file.
    """
    for package in CORPORA[name]:
        if name == "installed":
            copy_installed(package, torch_python, target)
        else:
            copy_downloaded(package, torch_python, target)
    return sum(len(file.read_bytes().splitlines()) for file in target.rglob("*.py"))


def copy_installed(package: Package, torch_python: Path, target: Path) -> None:
    name, _, version = package.requirement.partition("==")
    question = (
        "import importlib.metadata as m, sysconfig;"
        f"print(m.version({name!r}).partition('+')[0]); print(sysconfig.get_path('purelib'))"
    )
    answer = subprocess.run(
        [str(torch_python), "-c", question], capture_output=True, text=True, check=True
    )
    installed, site_packages = answer.stdout.split()
    if installed != version:
        raise ValueError(f"{package.requirement} is wanted, {installed} is installed")
    copy_python_files(Path(site_packages) / package.folder, target / package.folder, package)


def copy_downloaded(package: Package, torch_python: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        command = [str(torch_python), "-m", "pip", "--disable-pip-version-check", "install"]
        subprocess.run(
            [*command, "--quiet", "--no-deps", "--target", name, package.requirement], check=True
        )
        copy_python_files(Path(name) / package.folder, target / package.folder, package)


def copy_python_files(source: Path, target: Path, package: Package) -> None:
    for file in source.rglob("*.py"):
        inside = file.relative_to(source)
        if inside.parts[0] not in package.without:
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / inside)


def findings(name: str, folder: Path) -> list[dict[str, Any]]:
    """What ``ranksafe check`` says about a gathered corpus, with nothing known of the launch or of versions."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ranksafe", "check", "--no-cache", "--exit-zero"),
            *("--output-format", "json", str(folder)),
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'server'}{os.pathsep}{ROOT / 'rules'}"},
        cwd=folder,
    )
    return [described(name, folder, finding) for finding in json.loads(done.stdout)]


def described(name: str, folder: Path, finding: dict[str, Any]) -> dict[str, Any]:
    file, row = Path(finding["filename"]), finding["location"]["row"]
    inside = file.relative_to(folder).as_posix()
    package = next(item for item in CORPORA[name] if inside.startswith(f"{item.folder}/"))
    return {
        "package": package.requirement,
        "file": inside,
        "line": row,
        "code": finding["code"],
        "level": finding["level"],
        "text": file.read_text(encoding="utf-8").splitlines()[row - 1].strip(),
        "judgement": "",
    }


def snapshot_file(name: str) -> Path:
    return HERE / f"{name}.jsonl"


def read_snapshot(name: str) -> list[dict[str, Any]]:
    lines = snapshot_file(name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def identity(finding: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(finding[key] for key in IDENTITY)


def update(name: str, torch_python: Path) -> None:
    """Write the snapshot; judgements stay with findings that stand on the same text."""
    known = {}
    if snapshot_file(name).exists():
        known = {
            (item["package"], item["file"], item["code"], item["text"]): item["judgement"]
            for item in read_snapshot(name)
        }
    with tempfile.TemporaryDirectory() as folder:
        lines = gather(name, torch_python, Path(folder))
        found = findings(name, Path(folder))
    for item in found:
        key = (item["package"], item["file"], item["code"], item["text"])
        item["judgement"] = known.get(key, "")
    text = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in found)
    snapshot_file(name).write_text(text, encoding="utf-8")
    print(
        f"{name}: {len(found)} findings in {lines} lines, {1000 * len(found) / lines:.3f} per 1,000"
    )


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "update" or sys.argv[2] not in CORPORA:
        sys.exit(__doc__)
    update(sys.argv[2], Path(os.environ["RANKSAFE_TEST_TORCH_PYTHON"]))
