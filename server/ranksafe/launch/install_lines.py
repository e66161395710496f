"""What conda's environment files, and the commands of scripts and pages, install, as requirements of pip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_ITEM: Final = re.compile(r"\s*-\s+[\"']?([^\s\"'#]+(?:[ ,]*[<>=!~]=?[^\s\"'#]+)*)")
"""A line of a list in YAML."""
_KEY: Final = re.compile(r"([A-Za-z_]\w*)[ \t]*:")
"""What begins a section, at the beginning of a line."""
_OF_CONDA: Final = re.compile(r"(?:[\w./-]+::)?([A-Za-z0-9][\w.-]*)=(?!=)([\w.*]+)(?:=[\w.*]+)?")
"""``pytorch::pytorch=1.8.1=py3.8_cuda10.2``: channel, name, version and build (docs.conda.io, package match
specifications)."""
_NAMES_IN_CONDA: Final = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch"}
"""Packages that have another name on PyPI (conda-forge.org and anaconda.org/pytorch)."""
_PIP: Final = re.compile(r"\bpip[\d.]*[ \t]+install[ \t]")
_CONDA: Final = re.compile(r"\b(?:conda|mamba|micromamba)[ \t]+(?:install|create)[ \t]")
_WITH_A_WORD: Final = frozenset({"-c", "--channel", "-n", "--name"})
"""Options of conda that are followed by a name; pip's ``-c`` by a file."""
_NEXT_COMMAND: Final = re.compile(r"&&|\|\||[;|&]")
_GOES_ON: Final = re.compile(r"\\\r?\n")
_LISTED: Final = re.compile(r"[-*+]\s+[`*]*([A-Za-z][\w.-]*[ \t]*[<>=!~]{1,2}[^`*\n]*)[`*]*")
"""A line of a list that has nothing but one requirement: ``- torch=1.5``."""
_OPEN: Final = re.compile(
    r"\b([A-Za-z][\w-]{0,30})[^\w\n]{1,5}(\d[\d.]*)[ \t]*\(?"
    r"(?:\+(?!\w)|(?:or|and)[ \t]+(?:\+|above|\w+er\b)|[及或]?(?:以上|更高))"
)
"""``PyTorch 1.1 or higher``, ``torch 1.7+``."""


def of_environment(text: str) -> Iterator[str]:
    """The requirements in an environment of conda below ``dependencies``: those of conda, and those that it gives to
    pip."""
    if "dependencies:" not in text:
        return
    section = ""
    for line in text.splitlines():
        key = _KEY.match(line)
        if key is not None:
            section = key[1]
        found = _ITEM.match(line) if section == "dependencies" else None
        if found is not None:
            yield _as_pip_writes(found[1])


def of_page(text: str) -> Iterator[str]:
    """The requirements that a README or a page on the installation asks for: by commands, one by one in a list, or in
    words that leave the version open."""
    yield from of_script(text)
    for line in text.splitlines():
        found = _LISTED.fullmatch(line.strip())
        if found is not None:
            yield _as_pip_writes(found[1].strip())
        for name, version in _OPEN.findall(line):
            yield _as_pip_writes(f"{name}>={version.strip('.')}")


def of_script(text: str) -> Iterator[str]:
    """The requirements that the commands of a shell script or a Dockerfile install."""
    for line in _GOES_ON.sub(" ", text).splitlines():
        if line.lstrip().startswith("#"):
            continue
        for command in _NEXT_COMMAND.split(line):
            for installer in (_PIP, _CONDA):
                found = installer.search(command)
                if found is not None:
                    written = _words(command[found.end() :])
                    yield from written if installer is _PIP else map(_as_pip_writes, written)


def _words(arguments: str) -> Iterator[str]:
    """What a command is given, options that take a word and those words left out."""
    option = ""
    for word in arguments.split():
        if word.startswith("#"):
            return
        if word.startswith("-") or option in _WITH_A_WORD:
            option = "" if option in _WITH_A_WORD else word
            continue
        option = ""
        yield word.strip("\"'`()")


def _as_pip_writes(item: str) -> str:
    found = _OF_CONDA.fullmatch(item)
    if found is not None:
        version = found[2].removesuffix("*").removesuffix(".")
        return f"{_NAMES_IN_CONDA.get(found[1].lower(), found[1])}=={version}.*"
    written = item.rpartition("::")[2]
    name = re.match(r"[\w.-]+", written)
    other = None if name is None else _NAMES_IN_CONDA.get(name[0].lower())
    return written if name is None or other is None else other + written[name.end() :]
