"""One version everywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

from release.artefact import Complaints

_IN_SOURCE = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_HEADING = re.compile(r"^## (\S+)(.*)$", re.MULTILINE)
UNRELEASED = "unreleased"


def source_version(root: Path) -> str:
    """The version that the Python package says it has; every other place has to agree."""
    text = (root / "server/ranksafe/__init__.py").read_text(encoding="utf-8")
    found = _IN_SOURCE.search(text)
    if found is None:
        raise ValueError("server/ranksafe/__init__.py has no __version__")
    return found[1]


def disagreements(root: Path, tag: str | None) -> Complaints:
    """Places that say another version than the package, or do not fit the tag that is released."""
    version = source_version(root)
    lock = json.loads((root / "package-lock.json").read_text(encoding="utf-8"))
    said = {
        "package.json": json.loads((root / "package.json").read_text(encoding="utf-8"))["version"],
        "package-lock.json": lock["version"],
        "package-lock.json, its root package": lock["packages"][""]["version"],
    }
    heading = _HEADING.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    said["the first heading of CHANGELOG.md"] = heading[1] if heading else "nothing"
    if tag is not None:
        said[f"the tag {tag}"] = tag.removeprefix("v") if tag.startswith("v") else tag
        if heading is not None and UNRELEASED in heading[2]:
            yield f"CHANGELOG.md calls {heading[1]} {UNRELEASED}; it needs the day of the release"
    for place, other in said.items():
        if other != version:
            yield f"{place} says {other}, server/ranksafe/__init__.py says {version}"
