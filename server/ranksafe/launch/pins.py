"""Which versions of the training libraries a project asks for: they count where the library is not installed.

What reads requirements is imported at the first one: the server's client waits for the initialize reply.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from packaging.version import Version

from ranksafe.launch.context import Fact
from ranksafe.launch.install_lines import of_environment, of_page, of_script
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
_ENVIRONMENTS: Final = ("*.yml", "*.yaml")
_SCRIPTS: Final = ("*.sh",)
_PAGES: Final = tuple(
    f"{name}*{suffix}"
    for name in ("[Rr][Ee][Aa][Dd][Mm][Ee]", "[Ii][Nn][Ss][Tt][Aa][Ll][Ll]")
    for suffix in (".md", ".rst")
)
PIN_PATTERNS: Final = (*_ENVIRONMENTS, *_SCRIPTS, *_PAGES)
"""Other files that may say what to install: conda's environments under other names, scripts, what a reader does
first."""
_DOCUMENTS: Final = ("docs", "doc")
_MOST_FILES: Final = 30
_MOST_BYTES: Final = 1_000_000
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*")
_BEHIND: Final = re.compile(r"(?:^|\s)#|\s--|\\$|;")
"""What ends a requirement: a comment, an option such as ``--hash``, a line that goes on, a condition."""
_LOCAL: Final = re.compile(r"((?:~=|>=|<=|<|>)\s*[\w.]+)\+[\w.]+")
"""``~=1.8.1+cu111``: only ``==`` takes the build of a version, which people write everywhere."""
_LONGEST: Final = 200
_LISTS: Final = frozenset({".txt", ".toml", ".yml", ".yaml"})
"""Where a name alone says nothing of its version; a command with it installs the latest."""
_PINNED: Final = TRACKED | {"python"}
AskedFor: TypeAlias = Mapping[str, Fact | None]
"""What the files of one folder ask for; None: that may be one of several versions."""


def pinned_versions(
    folder: Path, root: Path, known: MutableMapping[Path, AskedFor] | None = None
) -> Mapping[str, Fact]:
    """Distribution name to the version that is asked for in a folder or, going up to ``root``, in the nearest that
    names the distribution at all, with the file as source.

    Only `TRACKED` distributions and Python itself, and only what leaves no choice but of the patch: ``==4.39.3``,
    ``>=5.3.0,<5.4.0``, ``~=2.1.0``; of those the lowest one. ``known``: what was read of folders before.
    """
    known = {} if known is None else known
    places = [folder, *folder.parents]
    places = places[: places.index(root) + 1] if root in places else [folder]
    found: dict[str, Fact | None] = {}
    for place in places:
        if place not in known:
            known[place] = _asked_for(place)
        found = {**known[place], **found}
    return {name: fact for name, fact in found.items() if fact is not None}


def _asked_for(folder: Path) -> AskedFor:
    """What the files in a folder leave no choice of. Of several, the first that is exact tells; what readers are told
    to install is one way to have what the others ask for, so it tells only where those are silent."""
    names = _names_in(folder)
    found: dict[str, Fact | None] = {}
    for files in _machine_read(folder, names):
        for name, fact in _agreed(files).items():
            if found.get(name) is None:
                found[name] = fact
    return {**_agreed(_pages(folder, names)), **found}


def _agreed(files: list[Path]) -> AskedFor:
    """What some files ask for, where all of them ask for the same."""
    asked: dict[str, dict[str | None, Path]] = {}
    for file in files:
        for name, specifier in _requirements(file):
            asked.setdefault(name, {}).setdefault(_only_version(specifier), file)
    found: dict[str, Fact | None] = {}
    for name, versions in asked.items():
        (version, file), *others = versions.items()
        found[name] = None if version is None or others else Fact(version, str(file))
    return found


def _machine_read(folder: Path, names: frozenset[str]) -> Iterator[list[Path]]:
    """The files of a folder that installers and shells read; those in one list have to agree."""
    yield from ([folder / name] for name in PIN_FILES if name in names)
    yield _fitting(folder, names, _ENVIRONMENTS)
    yield _fitting(folder, names, _SCRIPTS)


def _pages(folder: Path, names: frozenset[str]) -> list[Path]:
    """What readers are told to install."""
    pages = _fitting(folder, names, _PAGES)
    for document in names.intersection(_DOCUMENTS):
        pages += _fitting(folder / document, _names_in(folder / document), _PAGES)
    return pages


def _names_in(folder: Path) -> frozenset[str]:
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries)
    except OSError:
        return frozenset()


def _fitting(folder: Path, names: Iterable[str], patterns: tuple[str, ...]) -> list[Path]:
    """The files with fitting names; none where they are too many to be written for that."""
    found = sorted(name for name in names if any(fnmatchcase(name, item) for item in patterns))
    return [folder / name for name in found] if len(found) <= _MOST_FILES else []


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
        if name in _PINNED and len(written) <= _LONGEST:
            from packaging.requirements import InvalidRequirement, Requirement

            try:
                specifier = Requirement(_LOCAL.sub(r"\1", written)).specifier
            except InvalidRequirement:
                continue
            if specifier or file.suffix not in _LISTS:
                yield name, specifier


def _lines(file: Path, text: str) -> Iterable[str]:
    if file.suffix == ".txt":
        return text.splitlines()
    if file.suffix == ".toml":
        return _dependencies(parse_toml(text))
    if file.suffix in (".yml", ".yaml"):
        return of_environment(text)
    return of_page(text) if file.suffix in (".md", ".rst") else of_script(text)


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
