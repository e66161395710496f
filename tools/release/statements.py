"""What is said of a release: checksums, what it is made of, where it comes from."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from release.contents import Source, git
from release.vsix import TARGETS, pinned_libraries

CHECKSUMS = "SHA256SUMS"
PROVENANCE = "provenance.intoto.json"


def digest(file: Path) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write_checksums(folder: Path, files: Sequence[Path]) -> Path:
    """What ``sha256sum --check`` reads."""
    place = folder / CHECKSUMS
    place.write_text("".join(f"{digest(file)}  {file.name}\n" for file in files), encoding="utf-8")
    return place


def write_sboms(
    source: Source, folder: Path, version: str, tools: Path, installed: Path
) -> list[Path]:
    """CycloneDX: what the wheel installs, and what each .vsix bundles of Python's and of Node's libraries.

    ``tools`` is the Python of the release environment, ``installed`` an environment with the wheel and nothing else.
    """
    cyclonedx = str(tools.parent / "cyclonedx-py")
    project = ["--pyproject", str(source.root / "pyproject.toml"), "--output-reproducible"]
    commands = {
        "wheel": ([cyclonedx, "environment", *project, str(installed)], ""),
        "vsix-node": (
            [npm(), "sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only"],
            "",
        ),
    }
    for target in TARGETS:
        libraries = pinned_libraries(source.root, target)
        lines = "".join(f"{name}=={pin}\n" for name, pin in libraries.items())
        commands[f"vsix-{target}"] = ([cyclonedx, "requirements", *project, "-"], lines)
    written = []
    for name, (command, given) in commands.items():
        done = subprocess.run(
            command, cwd=source.root, check=True, input=given, capture_output=True, text=True
        )
        document = json.loads(done.stdout)
        # One tool knows no dynamic version, the other takes the folder's name for the package's.
        document["metadata"]["component"] |= {"name": "ranksafe", "version": version}
        place = folder / f"ranksafe-{version}-{name}.cdx.json"
        place.write_text(
            json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        written.append(place)
    return written


def write_provenance(source: Source, folder: Path, files: Sequence[Path], tag: str | None) -> Path:
    """An in-toto statement with SLSA's provenance: which files, of which commit, built by what. It is not signed; the
    signed one is GitHub's attestation, made by the workflow."""
    commit = git(source.root, "rev-parse", "HEAD").strip()
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": file.name, "digest": {"sha256": digest(file)}} for file in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{source.address}/blob/main/CONTRIBUTING.md#release",
                "externalParameters": {"tag": tag, "repository": source.address},
                "resolvedDependencies": [
                    {"uri": f"git+{source.address}", "digest": {"gitCommit": commit}}
                ],
            },
            "runDetails": {"builder": {"id": _builder(source)}, "metadata": _run()},
        },
    }
    place = folder / PROVENANCE
    place.write_text(json.dumps(statement, indent=2) + "\n", encoding="utf-8")
    return place


def _builder(source: Source) -> str:
    workflow = os.environ.get("GITHUB_WORKFLOW_REF")
    if workflow:
        return f"https://github.com/{workflow}"
    return f"{source.address}/blob/main/CONTRIBUTING.md#release-by-hand"


def _run() -> dict[str, Any]:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    number = os.environ.get("GITHUB_RUN_ID")
    address = f"{os.environ.get('GITHUB_SERVER_URL')}/{os.environ.get('GITHUB_REPOSITORY')}"
    run = {"invocationId": f"{address}/actions/runs/{number}"} if number else {}
    return {"finishedOn": now, **run}


def npm() -> str:
    """The program; on Windows it is a script that must be named in full."""
    return "npm.cmd" if os.name == "nt" else "npm"
