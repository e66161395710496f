"""Fetches published scripts and what they import, and rehearses them with the command line, as a user would."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ranksafe.runs.proofs.environment import cache_directory, overlay_for

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
MANIFEST = HERE / "manifest.toml"
LONGEST_SECONDS = 240
_COMMAND_LINE = (
    f"import sys; sys.path[:0] = [{str(ROOT / 'server')!r}, {str(ROOT / 'rules')!r}];"
    "from ranksafe.cli.main import run_command_line; sys.exit(run_command_line())"
)
_FETCH_SECONDS = 900
_fetching = threading.Lock()
"""Two scripts may come from the same package."""


class NotFetched(Exception):
    """A package could not be had, or a script is not the one that the manifest names."""


@dataclass(frozen=True)
class PublishedScript:
    """One entry of the manifest."""

    name: str
    package: str
    version: str
    path: str
    sha256: str
    launcher: str
    arguments: str
    """``{package}`` in them is the folder of the package's files."""
    kind: str = "published"
    requires: tuple[str, ...] = ()
    archive: Literal["source", "wheel"] = "source"
    module: str = ""
    """What ``-m`` starts; empty: the file is started."""
    folder: str = ""
    """Where it is started, inside of the package; empty: in a folder with nothing in it."""


@dataclass(frozen=True)
class Rehearsal:
    """How one script's rehearsal ended; ``result`` is the command line's JSON, None where it printed none."""

    script: PublishedScript
    status: int
    result: dict[str, Any] | None
    stderr: str

    @property
    def outcome(self) -> str:
        """The outcome's name."""
        return "broken" if self.result is None else str(self.result["outcome"])

    @property
    def is_true(self) -> bool:
        """Whether it passed, or failed as it would on real devices."""
        return self.outcome in ("succeeded", "failed", "silent-failure")

    @property
    def replaced(self) -> list[str]:
        """What the run's own notes say was replaced."""
        notes = [] if self.result is None else [str(note) for note in self.result["modified"]]
        return [note for note in notes if "→" in note]

    @property
    def note(self) -> str:
        """The first line of what it failed with, or of the limit."""
        if self.result is None:
            return (self.stderr.strip().splitlines() or ["nothing was printed"])[-1]
        failures = [*self.result["failures"], self.result.get("simulation_limit")]
        found = [failure for failure in failures if failure]
        found.sort(key=lambda failure: not failure.get("root_cause"))
        return str(found[0]["message"]).strip().splitlines()[0] if found else ""

    @property
    def places(self) -> list[str]:
        """``file:line`` of each failure, and of the limit."""
        if self.result is None:
            return []
        found = [*self.result["failures"], self.result.get("simulation_limit")]
        return [
            f"{failure['filename']}:{failure['location']['row']}"
            for failure in found
            if failure and failure.get("filename") and failure.get("location")
        ]


def scripts(manifest: Path = MANIFEST) -> list[PublishedScript]:
    """The manifest's entries."""
    entries = tomllib.loads(manifest.read_text("utf-8"))["script"]
    return [
        PublishedScript(**{**entry, "requires": tuple(entry.get("requires", ()))})
        for entry in entries
    ]


def fetched(script: PublishedScript, python: Path) -> Path:
    """The script's path, byte for byte as published. Raises NotFetched."""
    if script.kind == "documented":
        path = HERE / "documented" / script.path
    else:
        with _fetching:
            path = _source(script, python) / script.path
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
    if found != script.sha256:
        raise NotFetched(f"{script.name}: {path} has {found}, the manifest says {script.sha256}")
    return path


def installed(python: Path, manifest: Path = MANIFEST) -> Path:
    """A folder with the packages that the scripts import, for PYTHONPATH. Raises NotFetched."""
    wanted = tomllib.loads(manifest.read_text("utf-8"))["environment"]["packages"]
    key = hashlib.sha256("\n".join([*wanted, str(python)]).encode()).hexdigest()[:16]
    folder = _cache() / f"packages-{key}"
    if not folder.is_dir():
        unfinished = Path(tempfile.mkdtemp(dir=_cache()))
        _pip(python, "install", "--no-deps", "--no-compile", "--target", str(unfinished), *wanted)
        unfinished.rename(folder)
    return folder


def rehearse(
    script: PublishedScript,
    path: Path,
    python: Path,
    packages: Path | None,
    gpus: int = 2,
    options: Sequence[str] = (),
) -> Rehearsal:
    """Run ``ranksafe rehearse`` on it in an empty folder, with an empty cache of models."""
    folders = [] if packages is None else [str(packages)]
    overlay = overlay_for(script.requires, python, lambda text: print(text.en, file=sys.stderr))
    if overlay is not None:
        folders.insert(0, str(overlay))
    package = _top(path, script.path)
    what = (str(path), "--")
    if script.module:
        folders.insert(0, str(_top(path, script.module)))
        what = ("-m", script.module, "--")
    arguments = script.arguments.replace("{package}", str(package))
    with tempfile.TemporaryDirectory() as workspace:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(folders),
            "HF_HOME": str(Path(workspace) / "huggingface"),
            "TORCH_HOME": str(Path(workspace) / "torch"),
        }
        done = subprocess.run(
            [
                *(sys.executable, "-c", _COMMAND_LINE, "rehearse", "--output-format", "json"),
                *("--python", str(python), "--launcher", script.launcher, "--gpus", str(gpus)),
                *("--timeout", str(LONGEST_SECONDS), "--yes", *options, *what),
                *shlex.split(arguments),
            ],
            cwd=package / script.folder if script.folder else workspace,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST_SECONDS * 3,
        )
    try:
        result = json.loads(done.stdout)
    except ValueError:
        result = None
    return Rehearsal(script, done.returncode, result, done.stderr)


def table(rehearsals: Sequence[Rehearsal]) -> str:
    """Markdown, one row for each script."""
    lines = [
        "| package | file | sha256 | launcher | GPUs | outcome | replaced | seconds | note |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for done in rehearsals:
        script = done.script
        seconds = "" if done.result is None else f"{done.result['seconds']:.0f}"
        file = script.path if script.kind == "published" else f"documented/{script.path}"
        arguments = f" `{script.arguments}`" if script.arguments else ""
        cells = [
            f"{script.package} {script.version}"
            + (f" with {script.requires[0]}" if script.requires else ""),
            f"{file}{arguments}",
            script.sha256,
            script.launcher,
            "2",
            done.outcome,
            "; ".join(done.replaced) or "nothing",
            seconds,
            done.note.replace("|", "\\|")[:200],
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cache() -> Path:
    folder = cache_directory() / "public-scripts"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _top(path: Path, inside: str) -> Path:
    """The folder from which ``path`` is found: ``inside`` is its path there, or the module's name."""
    module = not inside.endswith(".py")
    depth = inside.count(".") + (path.name == "__main__.py") if module else inside.count("/")
    return path.parents[depth]


def _source(script: PublishedScript, python: Path) -> Path:
    wheel = script.archive == "wheel"
    folder = _cache() / f"{script.package}-{script.version}{'-wheel' if wheel else ''}"
    if folder.is_dir():
        return folder
    unfinished = Path(tempfile.mkdtemp(dir=_cache()))
    kind = "--only-binary" if wheel else "--no-binary"
    download = ("download", "--no-deps", kind, ":all:", "-d", str(unfinished))
    _pip(python, *download, f"{script.package}=={script.version}")
    archive = next(unfinished.glob("*.whl" if wheel else "*.tar.gz"), None)
    if archive is None:
        raise NotFetched(f"{script.package} {script.version} has no {script.archive} archive")
    content = unfinished / "content"
    if wheel:
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(content)
    else:
        with tarfile.open(archive) as opened:
            opened.extractall(unfinished, filter="data")
        content = next(entry for entry in unfinished.iterdir() if entry.is_dir())
    content.rename(folder)
    shutil.rmtree(unfinished)
    return folder


def _pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_SECONDS)
    if done.returncode:
        raise NotFetched(f"{shlex.join(command)}: {done.stderr.strip().splitlines()[-1:]}")
