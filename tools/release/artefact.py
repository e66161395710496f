"""An artefact that was built, as the files in it."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Complaints = Iterator[str]
"""What is wrong, a sentence each; nothing when all is well."""


@dataclass(frozen=True)
class Artefact:
    """A sdist, a wheel or a .vsix. Names of a sdist are without its one top folder."""

    path: Path
    files: dict[str, bytes]

    @property
    def name(self) -> str:
        return self.path.name

    def text(self, name: str) -> str:
        """A file's text; empty where it is missing, which another check says."""
        return self.files.get(name, b"").decode("utf-8")


def read_artefact(path: Path) -> Artefact:
    """Everything in it."""
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            members = [member for member in archive.getmembers() if member.isfile()]
            files = {member.name.split("/", 1)[1]: _read(archive, member) for member in members}
        return Artefact(path, files)
    with zipfile.ZipFile(path) as zipped:
        return Artefact(path, {name: zipped.read(name) for name in zipped.namelist()})


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return b"" if file is None else file.read()


Check = Callable[[Artefact], Complaints]
