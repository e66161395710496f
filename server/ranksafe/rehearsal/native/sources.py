"""Our C++ sources, and what each of them includes of our own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_SUFFIXES = (".cpp", ".h")


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A folder of sources: those of the devices library, with two folders in it for the other libraries."""

    folder: Path

    @property
    def stand_ins(self) -> tuple[Path, ...]:
        """What is linked into the stand-in libraries; knows nothing of torch."""
        return tuple(sorted((self.folder / "stand_ins").rglob("*.cpp")))

    @property
    def nccl(self) -> tuple[Path, ...]:
        """The Python extension module with the ``nccl`` process group: one file that includes its others."""
        return (self.folder / "nccl" / "one_unit.cpp",)

    @property
    def devices(self) -> tuple[Path, ...]:
        """The devices library: everything else."""
        others = {*self.stand_ins, *(self.folder / "nccl").rglob("*.cpp")}
        return tuple(path for path in sorted(self.folder.rglob("*.cpp")) if path not in others)

    def content_key(self, unit: Sequence[Path], facts: Iterable[str]) -> str:
        """Identifies what compiling ``unit`` gives: its files, what they include of ours, ``facts`` (flags, compiler).

        Raises OSError.
        """
        digest = hashlib.sha256("\0".join(facts).encode())
        for path in [*unit, *sorted(self._included(unit))]:
            digest.update(self._content(path))
        return digest.hexdigest()[:40]

    def key(self) -> str:
        """Changes with any source or header. Raises OSError."""
        digest = hashlib.sha256()
        for path in sorted(self.folder.rglob("*")):
            if path.suffix in _SUFFIXES:
                digest.update(self._content(path))
        return digest.hexdigest()

    def _content(self, path: Path) -> bytes:
        return path.relative_to(self.folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"

    def _included(self, unit: Iterable[Path]) -> set[Path]:
        """Our files that those of the unit include, directly or through others."""
        found: set[Path] = set()
        open_ends = list(unit)
        while open_ends:
            path = open_ends.pop()
            for name in _INCLUDE.findall(path.read_text(encoding="utf-8")):
                header = self._header(name, path.parent)
                if header is not None and header not in found:
                    found.add(header)
                    open_ends.append(header)
        return found

    def _header(self, name: str, folder: Path) -> Path | None:
        for place in (folder, self.folder):
            header = (place / name).resolve()
            if header.is_file() and header.is_relative_to(self.folder):
                return header
        return None


SOURCES = SourceTree(Path(__file__).resolve().parent / "src")
"""The sources of the simulated devices."""
