"""Which versions of the training libraries a project asks for: they count where the library is not installed.

What reads requirements is imported at the first one: the server's client waits for the initialize reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from packaging.version import Version

from ranksafe.launch.context import Fact
from ranksafe.launch.versions import TRACKED, normalized
from ranksafe.settings import parse_toml
from ranksafe.source.plain_files import read_plain

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

PIN_FILES: Final = ("requirements.txt", "pyproject.toml")
_MOST_BYTES: Final = 1_000_000
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*")
_BEHIND: Final = re.compile(r"(?:^|\s)#|\s--|\\$|;")
"""What ends a requirement: a comment, an option such as ``--hash``, a line that goes on, a condition."""
_LONGEST: Final = 200


def pinned_versions(folder: Path, root: Path) -> Mapping[str, Fact]:
    """Distribution name to the version that is asked for in a folder or, going up to ``root``, in the nearest that
    names the distribution at all, with the file as source.

    Only `TRACKED` distributions, and only what leaves no choice but of the patch: ``==4.39.3``, ``>=5.3.0,<5.4.0``,
    ``~=2.1.0``; of those the lowest one.
    """
    places = [folder, *folder.parents]
    places = places[: places.index(root) + 1] if root in places else [folder]
    found: dict[str, Fact | None] = {}
    for place in places:
        found = {**_asked_for(place), **found}
    return {name: fact for name, fact in found.items() if fact is not None}


def _asked_for(folder: Path) -> dict[str, Fact | None]:
    """What the files of one folder ask for; None: that may be one of several versions."""
    found: dict[str, Fact | None] = {}
    for file in (folder / name for name in PIN_FILES):
        asked: dict[str, set[str | None]] = {}
        for name, specifier in _requirements(file):
            asked.setdefault(name, set()).add(_only_version(specifier))
        for name, versions in asked.items():
            version = versions.pop() if len(versions) == 1 else None
            if found.get(name) is None:
                found[name] = None if version is None else Fact(version, str(file))
    return found


def _requirements(file: Path) -> Iterator[tuple[str, SpecifierSet]]:
    try:
        text = read_plain(file, _MOST_BYTES).decode("utf-8-sig", "replace")
        lines = text.splitlines() if file.suffix == ".txt" else _dependencies(parse_toml(text))
    except (OSError, ValueError):
        return
    for line in lines:
        written = _BEHIND.split(line, maxsplit=1)[0].strip()
        found = _NAME.match(written)
        name = None if found is None else normalized(found[0])
        if name in TRACKED and len(written) <= _LONGEST:
            from packaging.requirements import InvalidRequirement, Requirement

            try:
                yield name, Requirement(written).specifier
            except InvalidRequirement:
                continue


def _dependencies(document: dict[str, Any]) -> list[str]:
    project = document.get("project")
    listed = project.get("dependencies") if isinstance(project, dict) else None
    return [item for item in listed if isinstance(item, str)] if isinstance(listed, list) else []


def _only_version(specifier: SpecifierSet) -> str | None:
    lowest: list[Version] = []
    for item in specifier:
        if item.operator in ("==", "===") and not item.version.endswith(".*"):
            return item.version
        if item.operator in ("!=", ">"):
            return None
        if item.operator in ("==", ">=", "~="):
            lowest.append(Version(item.version.removesuffix(".*")))
    if not lowest:
        return None
    first = max(lowest)
    later = (f"{first.major}.{first.minor + 1}", f"{first.major + 1}.0")
    return None if any(specifier.contains(item, prereleases=True) for item in later) else str(first)
