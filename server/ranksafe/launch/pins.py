"""Which versions of the training libraries a project asks for: they count where the library is not installed.

What reads requirements is imported at the first one: the server's client waits for the initialize reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from packaging.version import Version

from ranksafe.launch.context import Fact
from ranksafe.launch.install_lines import of_environment, of_script
from ranksafe.launch.versions import TRACKED, normalized
from ranksafe.settings import parse_toml
from ranksafe.source.plain_files import read_plain

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

PIN_FILES: Final = (
    "requirements.txt",
    "requirement.txt",
    "pyproject.toml",
    "environment.yml",
    "environment.yaml",
    "Dockerfile",
)
PIN_SCRIPTS: Final = "*.sh"
_MOST_SCRIPTS: Final = 30
_MOST_BYTES: Final = 1_000_000
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*")
_BEHIND: Final = re.compile(r"(?:^|\s)#|\s--|\\$|;")
"""What ends a requirement: a comment, an option such as ``--hash``, a line that goes on, a condition."""
_LOCAL: Final = re.compile(r"((?:~=|>=|<=|<|>)\s*[\w.]+)\+[\w.]+")
"""``~=1.8.1+cu111``: only ``==`` takes the build of a version, which people write everywhere."""
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
    for files in (*([folder / name] for name in PIN_FILES), _scripts(folder)):
        asked: dict[str, dict[str | None, Path]] = {}
        for file in files:
            for name, specifier in _requirements(file):
                asked.setdefault(name, {}).setdefault(_only_version(specifier), file)
        for name, versions in asked.items():
            (version, file), *others = versions.items()
            if found.get(name) is None:
                found[name] = None if version is None or others else Fact(version, str(file))
    return found


def _scripts(folder: Path) -> list[Path]:
    """The scripts of a folder, which may install something; none where they are too many to be written for that."""
    try:
        found = sorted(islice(folder.glob(PIN_SCRIPTS), _MOST_SCRIPTS + 1))
    except OSError:
        return []
    return found if len(found) <= _MOST_SCRIPTS else []


def _requirements(file: Path) -> Iterator[tuple[str, SpecifierSet]]:
    try:
        text = read_plain(file, _MOST_BYTES).decode("utf-8-sig", "replace")
        lines = _lines(file, text)
    except (OSError, ValueError):
        return
    for line in lines:
        written = _BEHIND.split(line, maxsplit=1)[0].strip()
        found = _NAME.match(written)
        name = None if found is None else normalized(found[0])
        if name in TRACKED and len(written) <= _LONGEST:
            from packaging.requirements import InvalidRequirement, Requirement

            try:
                yield name, Requirement(_LOCAL.sub(r"\1", written)).specifier
            except InvalidRequirement:
                continue


def _lines(file: Path, text: str) -> Iterable[str]:
    if file.suffix == ".txt":
        return text.splitlines()
    if file.suffix == ".toml":
        return _dependencies(parse_toml(text))
    return of_script(text) if file.suffix not in (".yml", ".yaml") else of_environment(text)


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
