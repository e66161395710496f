"""What every artefact has to hold, and what none may."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from release.artefact import Artefact, Complaints

PACKAGES = {"server/ranksafe": "ranksafe", "rules/ranksafe_rules": "ranksafe_rules"}
"""The folders with the sources, and the packages they are."""
PREBUILT = "ranksafe/rehearsal/native/prebuilt/"
"""Made by tools/prebuild_rehearsal.py, or not there."""
_LEFT_OUT = "cases.md"
"""The rules' tests."""
_UNWANTED = re.compile(
    r"(^|/)(__pycache__|tests?|\.git|\.github|\.venv|\.vscode|node_modules|\.\w+_cache)/"
    r"|\.(py[co]|map|log|orig|rej|swp|key|pem|p12|vsix|whl)$"
    r"|(^|/)(cases\.md|\.env[^/]*|\.npmrc|\.pypirc|\.netrc|\.DS_Store|id_[a-z0-9]+)$"
)
_LINK = re.compile(r"(!?)\[(?:[^\]\[]|!?\[[^\]]*\]\([^)]*\))*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Source:
    """The checkout that a release is made of."""

    root: Path
    address: str
    """Where the repository is found, without a slash at the end."""

    @cached_property
    def tracked(self) -> frozenset[str]:
        """Every file that git knows."""
        return frozenset(git(self.root, "ls-files", "-z").rstrip("\0").split("\0"))

    @cached_property
    def package_files(self) -> Mapping[str, bytes]:
        """The files of the Python packages, by their names in the packages."""
        return {
            package + name[len(folder) :]: (self.root / name).read_bytes()
            for folder, package in PACKAGES.items()
            for name in self.tracked
            if name.startswith(f"{folder}/") and not name.endswith(f"/{_LEFT_OUT}")
        }

    def same_packages(
        self, artefact: Artefact, places: Mapping[str, str], *, prebuilt: bool
    ) -> Complaints:
        """The packages, at ``places`` in the artefact, have exactly the files that git knows."""
        there = {
            package + name[len(place) :]: content
            for package, place in places.items()
            for name, content in artefact.files.items()
            if name.startswith(f"{place}/")
        }
        if prebuilt:
            there = {name: each for name, each in there.items() if not name.startswith(PREBUILT)}
        wanted = self.package_files
        yield from named("missing", wanted.keys() - there.keys())
        yield from named("not known to git", there.keys() - wanted.keys())
        yield from named(
            "changed",
            {name for name in wanted.keys() & there.keys() if wanted[name] != there[name]},
        )

    def links(self, text: str, version: str) -> Complaints:
        """Links of a README lead somewhere from everywhere: whole addresses, of files that this version has."""
        seen = _LINK.findall(text)
        if not any(picture for picture, _ in seen):
            yield "its README has no picture"
        for picture, link in seen:
            kind = "raw" if picture else "blob"
            own = f"{self.address}/{kind}/v{version}/"
            if link.startswith("#") and not picture:
                continue
            if not link.startswith("https://"):
                yield f"its README links to {link}, which is no https address"
            elif link.startswith(f"{self.address}/") and not link.startswith(own):
                yield f"its README links to {link}, not into {own}"
            elif link.startswith(own) and not self._has(link[len(own) :].split("#")[0]):
                yield f"its README links to {link}, which the repository does not have"

    def _has(self, name: str) -> bool:
        return name in self.tracked or any(each.startswith(f"{name}/") for each in self.tracked)


def unwanted(artefact: Artefact) -> Complaints:
    """Tests, caches, keys and the like."""
    yield from named(
        "must not be there", {name for name in artefact.files if _UNWANTED.search(name)}
    )


def traces_of(artefact: Artefact, folders: Iterable[Path]) -> Complaints:
    """Paths of the machine that built it."""
    for folder in {str(each) for each in folders}:
        for said in {folder, folder.replace("\\", "/")}:
            found = {name for name, content in artefact.files.items() if said.encode() in content}
            yield from named(f"tells of {said}", found)


def required(artefact: Artefact, names: Iterable[str]) -> Complaints:
    """Files that must be there, and not empty."""
    yield from named("missing or empty", {name for name in names if not artefact.files.get(name)})


def named(problem: str, names: Iterable[str]) -> Complaints:
    """One complaint that names the first few."""
    found = sorted(names)
    if found:
        rest = f" and {len(found) - 5} more" if len(found) > 5 else ""
        yield f"{problem}: {', '.join(found[:5])}{rest}"


def git(root: Path, *arguments: str) -> str:
    """What git answers. Raises CalledProcessError."""
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
