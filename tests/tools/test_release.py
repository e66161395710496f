"""What `make release-check` sees in an artefact: a good one passes, and one fault is one complaint.

The artefacts are made here, of the real files of the checkout; the real ones are built by test_release_build.py.
"""

from __future__ import annotations

import importlib.machinery
import json
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
from environments import ROOT
from ranksafe import __version__
from ranksafe.checker.rule_folder import RULE_PAGES
from release.artefact import Artefact, read_artefact
from release.binaries import platforms_of
from release.contents import Source, traces_of, unwanted
from release.installation import misbehaviour
from release.python_packages import check_sdist, check_wheel
from release.statements import digest, write_checksums, write_provenance
from release.versions import disagreements, source_version
from release.vsix import check_vsix, pinned_libraries

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SOURCE = Source(ROOT, "https://github.com/ranksafe/ranksafe")
PINNED = {"libcst": "1.9.0", "pyyaml": "6.0.3"}
README = f"![A picture](https://github.com/ranksafe/ranksafe/raw/v{__version__}/docs/images/squiggle.png)\n[g](https://github.com/ranksafe/ranksafe/blob/v{__version__}/docs/guide.md#fixes)\n"
ELF = b"\x7fELF" + bytes(14) + struct.pack("<H", 0x3E)
MACH_O = b"\xcf\xfa\xed\xfe" + struct.pack("<I", 0x0100000C)
INFORMATION = f"ranksafe-{__version__}.dist-info"
METADATA = f"""\
Metadata-Version: 2.4
Name: ranksafe
Version: {__version__}
License-Expression: Apache-2.0
Project-URL: Homepage, {SOURCE.address}
Project-URL: Changelog, {SOURCE.address}/blob/main/CHANGELOG.md
Project-URL: Issues, {SOURCE.address}/issues
Description-Content-Type: text/markdown

{README}"""
MANIFEST = """\
<PackageManifest xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata><Identity Version="{version}" TargetPlatform="linux-x64" /></Metadata></PackageManifest>
"""
Files = dict[str, bytes]
Change = Callable[[Files], object]

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the sources are no clone")


@pytest.fixture(scope="module")
def wheel() -> Files:
    return {
        **SOURCE.package_files,
        f"{INFORMATION}/METADATA": METADATA.encode(),
        f"{INFORMATION}/entry_points.txt": b"ranksafe = ranksafe.__main__:start",
        f"{INFORMATION}/licenses/LICENSE": b"Apache",
    }


@pytest.fixture(scope="module")
def sdist() -> Files:
    kept = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")
    tops = {"ranksafe": "server", "ranksafe_rules": "rules"}
    packages = {f"{tops[n.split('/')[0]]}/{n}": each for n, each in SOURCE.package_files.items()}
    return {"PKG-INFO": b"x", **packages, **{name: (ROOT / name).read_bytes() for name in kept}}


@pytest.fixture(scope="module")
def vsix() -> Files:
    tops = {"ranksafe": "server", "ranksafe_rules": "rules"}
    files = {f"bundled/{tops[n.split('/')[0]]}/{n}": x for n, x in SOURCE.package_files.items()}
    for name, version in PINNED.items():
        files[f"bundled/libs/{name}-{version}.dist-info/LICENCE"] = b"MIT"
    for number in ("310", "314"):
        files[f"bundled/libs/libcst/native.cpython-{number}-x86_64-linux-gnu.so"] = ELF
        files[f"bundled/libs/yaml/_yaml.cpython-{number}-x86_64-linux-gnu.so"] = ELF
    shown = (
        "client/walkthrough/",
        "examples/",
        "l10n/",
        "package.",
        "client/bootstrap",
        "client/icon.png",
    )
    copied = [name for name in SOURCE.tracked if name.startswith(shown)]
    files |= {name: (ROOT / name).read_bytes() for name in copied}
    files |= {"readme.md": README.encode()}
    for name in (
        "changelog.md",
        "LICENSE.txt",
        "dist/extension.js",
        "dist/extension.js.LICENSES.txt",
    ):
        files[name] = b"x"
    manifest = MANIFEST.format(version=__version__).encode()
    return {f"extension/{name}": each for name, each in files.items()} | {
        "extension.vsixmanifest": manifest
    }


def wheel_complaints(files: Files) -> list[str]:
    artefact = Artefact(Path(f"ranksafe-{__version__}-py3-none-any.whl"), files)
    return [*unwanted(artefact), *check_wheel(artefact, SOURCE, __version__)]


def sdist_complaints(files: Files) -> list[str]:
    artefact = Artefact(Path(f"ranksafe-{__version__}.tar.gz"), files)
    return [*unwanted(artefact), *check_sdist(artefact, SOURCE)]


def vsix_complaints(files: Files, target: str = "linux-x64") -> list[str]:
    artefact = Artefact(Path(f"ranksafe-{target}-{__version__}.vsix"), files)
    pythons = ["3.10", "3.14"]
    found = check_vsix(artefact, SOURCE, __version__, target, PINNED, pythons)
    return [*unwanted(artefact), *found]


def put(name: str, content: bytes) -> Change:
    return lambda files: files.update({name: content})


def without(name: str) -> Change:
    return lambda files: files.pop(name)


def replaced(name: str, old: bytes, new: bytes) -> Change:
    return lambda files: files.update({name: files[name].replace(old, new)})


def changed(files: Files, change: Change) -> Files:
    copy = dict(files)
    change(copy)
    assert copy != files
    return copy


def test_good_artefacts(wheel: Files, sdist: Files, vsix: Files) -> None:
    assert wheel_complaints(wheel) == []
    assert sdist_complaints(sdist) == []
    assert vsix_complaints(vsix) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("ranksafe/__pycache__/a.pyc", b"x"), "must not be there: ranksafe/__pycache__/a.pyc"),
        (put("ranksafe_rules/model/cases.md", b"x"), "must not be there"),
        (put("ranksafe/new.py", b"x"), "not known to git: ranksafe/new.py"),
        (put("ranksafe/__init__.py", b"x"), "changed: ranksafe/__init__.py"),
        (put("other/__init__.py", b"x"), "not expected: other/__init__.py"),
        (without("ranksafe/checker/configuration.schema.json"), "missing: ranksafe/checker/conf"),
        (without(f"{INFORMATION}/licenses/LICENSE"), "missing or empty"),
        (put(f"{INFORMATION}/entry_points.txt", b""), "lacks the command"),
        (replaced(f"{INFORMATION}/METADATA", b"Apache-2.0", b"MIT"), "License-Expression: MIT"),
        (replaced(f"{INFORMATION}/METADATA", b"Issues,", b"Other,"), "no Project-URL Issues"),
        (replaced(f"{INFORMATION}/METADATA", b"squiggle", b"gone"), "does not have"),
        (replaced(f"{INFORMATION}/METADATA", b"![A", b"[A"), "no picture"),
        (put("ranksafe/rehearsal/native/prebuilt/a.so", MACH_O), "not for Linux"),
    ],
)  # fmt: skip
def test_what_a_wheel_must_not_be(wheel: Files, change: Change, said: str) -> None:
    (complaint, *rest) = wheel_complaints(changed(wheel, change))
    assert said in complaint
    assert len(rest) <= 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("CHANGELOG.md"), "CHANGELOG.md is missing"),
        (put("tests/test_a.py", b"x"), "must not be there: tests/test_a.py"),
        (put("notes.txt", b"x"), "not expected: notes.txt"),
    ],
)
def test_what_a_sdist_must_not_be(sdist: Files, change: Change, said: str) -> None:
    assert said in sdist_complaints(changed(sdist, change))[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("extension/package.nls.zh-cn.json"), "missing or empty: extension/package.nls.zh"),
        (put("extension/package.nls.json", b"{}"), "package.nls.json is not that of the checkout"),
        (without("extension/examples/model.py"), "examples/model.py is missing"),
        (put("extension/client/src/extension.ts", b"x"), "not expected: client/src/extension.ts"),
        (put("extension/package.json", b'{"version": "9"}'), "package.json says version 9"),
        (replaced("extension.vsixmanifest", b"linux-x64", b"web"), "says platform web"),
        (replaced("extension/readme.md", b"https://github.com", b"http://github.com"), "no https"),
        (replaced("extension/readme.md", b"blob/v", b"blob/w"), "not into"),
        (without("extension/bundled/libs/libcst-1.9.0.dist-info/LICENCE"), "bundled libraries are"),
        (put("extension/bundled/libs/libcst-1.9.0.dist-info/METADATA", b"x"), None),
        (put("extension/bundled/libs/a.cpython-310-darwin.so", MACH_O), "is for darwin-arm64"),
        (put("extension/bundled/libs/a.cp310-win_amd64.pyd", ELF), "would not be found"),
        (
            without("extension/bundled/libs/libcst/native.cpython-314-x86_64-linux-gnu.so"),
            "libcst/native for Python 3.14 is missing",
        ),
    ],
)
def test_what_a_vsix_must_not_be(vsix: Files, change: Change, said: str | None) -> None:
    complaints = vsix_complaints(changed(vsix, change))
    assert complaints == [] if said is None else said in complaints[0]


def test_the_universal_package_has_nothing_compiled(vsix: Files) -> None:
    files = changed(vsix, replaced("extension.vsixmanifest", b' TargetPlatform="linux-x64"', b""))
    complaints = vsix_complaints(files, "universal")
    assert len(complaints) == 1
    assert complaints[0].startswith("compiled, in the universal package: extension/bundled/libs/")


def test_a_licence_belongs_to_each_library(vsix: Files) -> None:
    place = "extension/bundled/libs/libcst-1.9.0.dist-info"
    files = changed(vsix, without(f"{place}/LICENCE"))
    complaints = vsix_complaints(changed(files, put(f"{place}/METADATA", b"x")))
    assert complaints == ["without its licence: libcst"]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node 20 or newer is needed")
def test_what_is_bundled_for_whom() -> None:
    usual = pinned_libraries(ROOT, "linux-x64")
    assert usual.keys() - pinned_libraries(ROOT, "universal").keys() == {"libcst", "pyyaml"}
    differing = dict(pinned_libraries(ROOT, "darwin-x64").items() - usual.items())
    assert differing == {"libcst": "1.8.6"}


def test_the_header_of_a_real_library_of_this_python() -> None:
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    folder = Path(json.__file__).parent.parent / "lib-dynload"
    libraries = [*folder.glob(f"*{suffix}")]
    answer = {"linux": {"linux-x64", "linux-arm64"}, "darwin": {"darwin-x64", "darwin-arm64"}}
    for library in libraries:
        assert platforms_of(library.read_bytes()) <= answer[sys.platform]


@pytest.mark.parametrize(
    ("content", "platforms"),
    [
        (MACH_O, {"darwin-arm64"}),
        (b"MZ" + bytes(0x3A) + struct.pack("<I", 64) + b"PE\0\0\x64\x86", {"win32-x64"}),
        (
            b"\xca\xfe\xba\xbe\0\0\0\2"
            + struct.pack(">IIIII", 0x01000007, 3, 0, 0, 0)
            + struct.pack(">IIIII", 0x0100000C, 0, 0, 0, 0),
            {"darwin-x64", "darwin-arm64"},
        ),
        (b"#!/bin/sh\n" + bytes(20), {"unknown"}),
    ],
)
def test_headers_of_other_systems(content: bytes, platforms: set[str]) -> None:
    assert platforms_of(content) == platforms


def test_paths_of_the_machine_are_found() -> None:
    files = {"a.js": b"//# /home/me/ranksafe/client", "b.js": b"/usr/bin/env"}
    artefact = Artefact(Path("a.vsix"), files)
    assert [*traces_of(artefact, [Path("/home/me/ranksafe")])] == [
        "tells of /home/me/ranksafe: a.js"
    ]


def test_archives_are_read(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("a-1/x/y.txt")
        member.size = 2
        archive.addfile(member, BytesIO(b"hi"))
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as zipped:
        zipped.writestr("x/y.txt", "hi")
    for name in ("a.tar.gz", "a.whl"):
        assert read_artefact(tmp_path / name).files == {"x/y.txt": b"hi"}


@pytest.fixture
def versions(tmp_path: Path) -> Iterator[Path]:
    """The files that say a version, as they are."""
    (tmp_path / "server/ranksafe").mkdir(parents=True)
    for name in (
        "package.json",
        "package-lock.json",
        "CHANGELOG.md",
        "server/ranksafe/__init__.py",
    ):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_one_version_everywhere(versions: Path) -> None:
    assert source_version(ROOT) == __version__
    assert [*disagreements(ROOT, None)] == []
    changelog = versions / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(text.replace(f"## {__version__}", "## 7.0.0 (unreleased)\n\n## 0.0.1"))
    package = json.loads((versions / "package.json").read_text(encoding="utf-8"))
    (versions / "package.json").write_text(json.dumps({**package, "version": "8.0.0"}))
    assert [each.split(",")[0] for each in disagreements(versions, "v9.0.0")] == [
        "CHANGELOG.md calls 7.0.0 unreleased; it needs the day of the release",
        "package.json says 8.0.0",
        "the first heading of CHANGELOG.md says 7.0.0",
        "the tag v9.0.0 says 9.0.0",
    ]


def test_one_address_of_the_repository() -> None:
    manifest = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    address = manifest["homepage"]
    assert RULE_PAGES.startswith(f"{address}/")
    assert manifest["repository"]["url"] == f"{address}.git"
    for url in (manifest["bugs"]["url"], manifest["qna"], *project["project"]["urls"].values()):
        assert url == address or url.startswith(f"{address}/")
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for each in hook["substitutions"]:
        assert f"{address}/" in each["replacement"]


def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.whl", "b.vsix")]
    for file in files:
        file.write_bytes(file.name.encode())
    write_checksums(tmp_path, files)
    check = partial(
        subprocess.run, ["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, capture_output=True
    )
    assert check(check=False).returncode == 0
    files[0].write_bytes(b"other")
    assert b"a.whl: FAILED" in check(check=False).stdout


def test_provenance_names_files_and_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_WORKFLOW_REF", "GITHUB_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "a.whl"
    file.write_bytes(b"x")

    def statement() -> dict[str, object]:
        place = write_provenance(SOURCE, tmp_path, [file], "v1")
        return json.loads(place.read_text(encoding="utf-8"))

    said = statement()
    assert said["subject"] == [{"name": "a.whl", "digest": {"sha256": digest(file)}}]
    head = subprocess.check_output(["git", "-C", str(ROOT), "rev-parse", "HEAD"], text=True).strip()
    assert head in json.dumps(said)
    assert str(ROOT) not in json.dumps(said)
    monkeypatch.setenv("GITHUB_WORKFLOW_REF", "o/r/.github/workflows/release.yml@refs/tags/v1")
    assert "https://github.com/o/r/.github/workflows/release.yml@refs/tags/v1" in json.dumps(
        statement()
    )


@pytest.mark.parametrize("fault", ["", "echo 9.9; exit 0", "exit 3"])
def test_what_is_installed_is_used(tmp_path: Path, fault: str) -> None:
    program = tmp_path / "bin" / "ranksafe"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n{fault}\nexec {sys.executable} -m ranksafe "$@"\n')
    program.chmod(0o755)
    path = f"{ROOT / 'server'}:{ROOT / 'rules'}"
    environment = {"PYTHONPATH": path, "HOME": str(tmp_path), "LC_ALL": "C"}
    complaints = [*misbehaviour(tmp_path, __version__, environment)]
    assert len(complaints) == (2 if fault else 0)
