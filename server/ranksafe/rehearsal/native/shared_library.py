"""What a shared library exports, needs and is called, as ``readelf`` tells it.

readelf is part of binutils, without which there is no linking, so it is there whenever stand-ins can be made at all;
it reads the 100 000 symbols of libtorch_cpu in a third of a second, where pure Python readers take many.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ranksafe.rehearsal.native.compiler import CompilerFailed

_DYNAMIC = re.compile(r"^[^(]*\((NEEDED|SONAME|RPATH|RUNPATH)\)[^\[]*\[(.*)\]$")
_SYMBOL = re.compile(
    r"^\s*\d+: [0-9a-f]+\s+(\w+) (\w+)\s+(\w+)\s+(\w+)\s+(?:\[.*\]\s+)?(\w+) (\S+)(?: \(\d+\))?$"
)
_VERSION_FILE = re.compile(r"Version: \d+  File: (\S+)  Cnt:")
_VERSION_NAME = re.compile(r"Name: (\S+)  Flags:")


@dataclass(frozen=True, slots=True)
class Symbol:
    """An entry of a library's dynamic symbol table."""

    name: str
    version: str | None
    kind: str
    """``FUNC``, ``OBJECT``, ``TLS``, ``NOTYPE``, ``IFUNC``."""
    size: int
    """Bytes; 0 where the symbol is defined elsewhere."""
    weak: bool
    """Weak, or unique in the process (GNU): others may define it too."""


@dataclass(slots=True)
class SharedLibrary:
    """One ELF file."""

    path: Path
    soname: str
    needed: list[str] = field(default_factory=list)
    search: list[str] = field(default_factory=list)
    """The folders of its RPATH or RUNPATH, as written: with ``$ORIGIN``."""
    defined: dict[str, Symbol] = field(default_factory=dict)
    undefined: list[Symbol] = field(default_factory=list)
    version_files: dict[str, str] = field(default_factory=dict)
    """Which library a version of an undefined symbol is expected from."""


def read_shared_library(path: Path, readelf: str = "readelf") -> SharedLibrary:
    """Read the dynamic section and symbols of ``path``. Raises CompilerFailed and OSError."""
    answer = subprocess.run(
        [readelf, "--wide", "--dynamic", "--dyn-syms", "--version-info", str(path)],
        env={**os.environ, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if answer.returncode != 0:
        raise CompilerFailed(f"{readelf} {path}\n{answer.stderr}")
    library = SharedLibrary(path, path.name)
    file = ""
    for line in answer.stdout.splitlines():
        if symbol := _SYMBOL.match(line):
            _add_symbol(library, *symbol.groups())
        elif entry := _DYNAMIC.search(line):
            _add_dynamic(library, *entry.groups())
        elif found := _VERSION_FILE.search(line):
            file = found.group(1)
        elif file and (found := _VERSION_NAME.search(line)):
            library.version_files[found.group(1)] = file
    return library


def oldest_glibc(paths: Iterable[Path], readelf: str = "readelf") -> str:
    """The version of the GNU C library that all of ``paths`` can be loaded with. Raises CompilerFailed and OSError."""
    needed = [
        tuple(map(int, version.removeprefix("GLIBC_").split(".")))
        for path in paths
        for version in read_shared_library(path, readelf).version_files
        if re.fullmatch(r"GLIBC_[\d.]+", version)
    ]
    return ".".join(map(str, max(needed, default=(2, 17))))


def _add_symbol(
    library: SharedLibrary,
    size: str,
    kind: str,
    binding: str,
    visibility: str,
    section: str,
    full_name: str,
) -> None:
    if binding == "LOCAL" or visibility in ("HIDDEN", "INTERNAL"):
        return
    name, _, version = full_name.partition("@")
    symbol = Symbol(name, version.lstrip("@") or None, kind, int(size, 0), binding != "GLOBAL")
    if section == "UND":
        library.undefined.append(symbol)
    else:
        library.defined[name] = symbol


def _add_dynamic(library: SharedLibrary, tag: str, value: str) -> None:
    if tag == "NEEDED":
        library.needed.append(value)
    elif tag == "SONAME":
        library.soname = value
    else:
        library.search += value.split(":")
