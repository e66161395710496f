"""The extension's packages, one per platform and one for all others."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

from release.artefact import Artefact, Complaints
from release.binaries import platforms_of
from release.contents import PREBUILT, Source, named, required

UNIVERSAL = "universal"
TARGETS = ("linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64", UNIVERSAL)
"""What is released. client/bundle/platforms.mjs knows more that can be built."""
_SUFFIXES = {
    "linux-x64": "-x86_64-linux-gnu.so",
    "linux-arm64": "-aarch64-linux-gnu.so",
    "darwin-x64": "-darwin.so",
    "darwin-arm64": "-darwin.so",
    "win32-x64": "-win_amd64.pyd",
}
_XML = "{http://schemas.microsoft.com/developer/vsx-schema/2011}"
_LIBRARIES = "extension/bundled/libs/"
_READ = ("package.json", "package.nls.json", "package.nls.zh-cn.json", "readme.md", "changelog.md")
_REQUIRED = (
    *_READ,
    "LICENSE.txt",
    "dist/extension.js",
    "dist/extension.js.LICENSES.txt",
    "client/bootstrap.py",
    "client/icon.png",
    "l10n/bundle.l10n.zh-cn.json",
    "examples/README.md",
)
_PLACES = (
    "bundled/libs/",
    "bundled/server/ranksafe/",
    "bundled/rules/ranksafe_rules/",
    "client/walkthrough/",
    "examples/",
)
_INFORMATION = re.compile(
    rf"{_LIBRARIES}(?P<name>[\w.]+?)-(?P<version>[^/]+)\.dist-info/(?P<file>.+)"
)
_LICENCE = re.compile(r"licen[cs]e|notice|copying", re.IGNORECASE)
Libraries = Mapping[str, str]
"""Names of Python libraries, and their versions."""


def pinned_libraries(root: Path, target: str) -> Libraries:
    """What client/bundle/libraries.mjs bundles for a platform. Raises CalledProcessError."""
    script = (
        "import { pinned } from './client/bundle/libraries.mjs';"
        f"console.log(JSON.stringify(pinned({json.dumps(target)})))"
    )
    words = ["node", "--input-type=module", "--eval", script]
    answer = subprocess.run(words, cwd=root, check=True, stdout=subprocess.PIPE).stdout
    return {each["name"]: each["version"] for each in json.loads(answer)}


def check_vsix(
    artefact: Artefact,
    source: Source,
    version: str,
    target: str,
    pinned: Libraries,
    pythons: Sequence[str],
) -> Complaints:
    """It is the package of ``target``, complete, and holds nothing of another platform."""
    yield from required(artefact, [f"extension/{name}" for name in _REQUIRED])
    inside = {name.removeprefix("extension/") for name in artefact.files if "/" in name}
    yield from named(
        "not expected",
        {name for name in inside if name not in _REQUIRED and not name.startswith(_PLACES)},
    )
    places = {
        "ranksafe": "extension/bundled/server/ranksafe",
        "ranksafe_rules": "extension/bundled/rules/ranksafe_rules",
    }
    yield from source.same_packages(artefact, places, prebuilt=target == "linux-x64")
    yield from _manifest(artefact, version, target)
    yield from _copies(artefact, source)
    yield from source.links(artefact.text("extension/readme.md"), version)
    yield from _libraries(artefact, pinned)
    yield from _compiled(artefact, target, pythons)


def _manifest(artefact: Artefact, version: str, target: str) -> Complaints:
    said = json.loads(artefact.text("extension/package.json") or "{}")
    if said.get("version") != version:
        yield f"package.json says version {said.get('version')}"
    root = ET.fromstring(artefact.text("extension.vsixmanifest"))
    identity = root.find(f"{_XML}Metadata/{_XML}Identity")
    attributes = {} if identity is None else identity.attrib
    if attributes.get("Version") != version:
        yield f"extension.vsixmanifest says version {attributes.get('Version')}"
    platform = attributes.get("TargetPlatform", UNIVERSAL)
    if platform != target:
        yield f"extension.vsixmanifest says platform {platform}"


def _copies(artefact: Artefact, source: Source) -> Complaints:
    """Texts and examples are those of the checkout, in both languages where there are two."""
    for name in _READ[1:3]:
        if artefact.files.get(f"extension/{name}") != (source.root / name).read_bytes():
            yield f"{name} is not that of the checkout"
    folders = ("client/walkthrough/", "examples/", "l10n/")
    for name in source.tracked:
        if name.startswith(folders) and not artefact.files.get(f"extension/{name}"):
            yield f"{name} is missing"


def _libraries(artefact: Artefact, pinned: Libraries) -> Complaints:
    """Every pinned library is there, with its licence, and no other."""
    found: dict[str, str] = {}
    licensed: set[str] = set()
    for name in artefact.files:
        inside = _INFORMATION.match(name)
        if inside:
            library = inside["name"].lower().replace("_", "-")
            found[library] = inside["version"]
            if _LICENCE.search(inside["file"]):
                licensed.add(library)
    if found != pinned:
        yield f"bundled libraries are {found}, pinned are {pinned}"
    yield from named("without its licence", found.keys() - licensed)


def _compiled(artefact: Artefact, target: str, pythons: Sequence[str]) -> Complaints:
    compiled = {
        name: content
        for name, content in artefact.files.items()
        if name.endswith((".so", ".pyd", ".dylib", ".dll")) and PREBUILT not in name
    }
    if target == UNIVERSAL:
        yield from named("compiled, in the universal package", compiled)
        return
    for name, content in compiled.items():
        if target not in platforms_of(content):
            yield f"{name} is for {', '.join(sorted(platforms_of(content)))}"
        elif not name.endswith(_SUFFIXES[target]):
            yield f"{name} would not be found by a Python on {target}"
    for version in pythons:
        number = version.replace(".", "")
        for library in ("libcst/native", "yaml/_yaml"):
            parts = re.compile(rf"{_LIBRARIES}{library}\.(cpython-|cp){number}-")
            if not any(parts.match(name) for name in compiled):
                yield f"{library} for Python {version} is missing"
