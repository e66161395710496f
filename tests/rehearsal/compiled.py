"""Small compiled programs for tests of what is compiled."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.native.compiler import Compiler, find_compiler


def needed_compiler() -> Compiler:
    """The machine's C++ compiler, or a skip that says what to install."""
    try:
        return find_compiler()
    except RehearsalNotPossible as error:
        if os.environ.get("CI") == "true":
            pytest.fail(error.message.en)
        pytest.skip(error.message.en)


def shared_library(compiler: Compiler, path: Path, text: str, *options: str) -> Path:
    """Compile ``text`` into the shared library ``path``, whose SONAME is its file name."""
    source = path.with_suffix(".cpp")
    source.write_text(text)
    soname = f"-Wl,-soname,{path.name}"
    command = [*compiler.command, "-shared", "-fPIC", "-O1", str(source), soname, "-o", str(path)]
    subprocess.run([*command, *options], check=True)
    return path
