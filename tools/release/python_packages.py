"""The source distribution and the wheel."""

from __future__ import annotations

from email import message_from_string

from release.artefact import Artefact, Complaints
from release.binaries import platforms_of
from release.contents import PACKAGES, PREBUILT, Source, named, required


def check_sdist(artefact: Artefact, source: Source) -> Complaints:
    """What pip needs to build a wheel, and what people read."""
    root = source.root
    yield from required(artefact, ["PKG-INFO", "pyproject.toml"])
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        if artefact.files.get(name) != (root / name).read_bytes():
            yield f"{name} is missing or not that of the checkout"
    places = {package: folder for folder, package in PACKAGES.items()}
    yield from source.same_packages(artefact, places, prebuilt=False)
    known = (*PACKAGES, "PKG-INFO", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")
    strange = {name for name in artefact.files if not name.startswith((*known, ".gitignore"))}
    yield from named("not expected", strange)


def check_wheel(artefact: Artefact, source: Source, version: str) -> Complaints:
    """A pure wheel: both packages, the licence, the commands, and nothing else."""
    information = f"ranksafe-{version}.dist-info"
    if artefact.name != f"ranksafe-{version}-py3-none-any.whl":
        yield f"{artefact.name} is not the pure wheel of {version}"
    yield from source.same_packages(
        artefact, {package: package for package in PACKAGES.values()}, prebuilt=True
    )
    yield from required(artefact, [f"{information}/licenses/LICENSE"])
    places = tuple(f"{package}/" for package in (*PACKAGES.values(), information))
    yield from named("not expected", {n for n in artefact.files if not n.startswith(places)})
    commands = artefact.text(f"{information}/entry_points.txt")
    if "ranksafe = ranksafe.__main__:start" not in commands:
        yield "entry_points.txt lacks the command"
    for name, content in artefact.files.items():
        if name.startswith(PREBUILT) and name.endswith(".so"):
            if platforms_of(content) != {"linux-x64"}:
                yield f"{name} is not for Linux on x86-64"
    yield from _metadata(artefact.text(f"{information}/METADATA"), source, version)


def _metadata(text: str, source: Source, version: str) -> Complaints:
    metadata = message_from_string(text)
    wanted = {
        "Name": "ranksafe",
        "Version": version,
        "License-Expression": "Apache-2.0",
        "Description-Content-Type": "text/markdown",
    }
    for key, value in wanted.items():
        if metadata.get(key) != value:
            yield f"METADATA says {key}: {metadata.get(key)}, not {value}"
    addresses = metadata.get_all("Project-URL") or []
    for label in ("Homepage", "Changelog", "Issues"):
        if not any(each.startswith(f"{label}, {source.address}") for each in addresses):
            yield f"METADATA has no Project-URL {label} in {source.address}"
    yield from source.links(str(metadata.get_payload()), version)
