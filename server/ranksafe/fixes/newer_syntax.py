"""Syntax that Python has, but not the Python that ranksafe runs with."""

from __future__ import annotations

import json
import sys

_PARSE = """
import json, sys
path, text = json.load(sys.stdin)
sys.path[:] = path
import libcst
libcst.parse_module(text)
"""
_WITHIN = 10
"""Seconds; a file of 20,000 ordinary lines takes 4."""


def is_newer_syntax(text: str) -> bool:
    """Whether a text that is a syntax error here is one of a newer Python: libcst's grammar is that of its release.

    A process of its own asks: libcst's parser has no limit of depth, so that it overflows its stack on some texts and
    takes time that grows with the square of the depth on others (1.9).
    """
    import subprocess  # here: few files need it, and importing it takes as long as checking a file

    try:
        asked = subprocess.run(
            [sys.executable, "-I", "-c", _PARSE],
            input=json.dumps([sys.path, text]).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_WITHIN,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0
