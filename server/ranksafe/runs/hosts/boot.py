"""How a program gets into a Python on a host: a command line that says nothing of it, and one line on standard input.

A remote shell (bash, dash, zsh, tcsh, fish) reads the command line; `BOOT` has none of the characters that any of them
takes for its own inside single quotes (quotes, backslashes, ``!``, line ends). What it reads first, unbuffered and to
the end of the line, is `opening`; what follows belongs to the program.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

BOOT: Final = "import sys;exec(sys.stdin.buffer.raw.readline())"
"""For ``python -c``. Raw streams read line ends byte by byte (CPython's ``_io._IOBase.readline``), never too far."""
GREETING: Final = b"\x1eranksafe\n"
"""Comes before the program's own output: whatever a login shell prints is left behind it."""
PYTHON_OPTIONS: Final = ("-I", "-u", "-c", BOOT)
"""Isolated: nothing of the user's is imported into a program of ours."""
TOO_OLD: Final = 97
"""Exit status where the interpreter is older than 3.8."""

_LOADER = (
    "import sys,base64,zlib;"
    "sys.version_info>=(3,8) or sys.exit({old});"
    "sys.stdout.buffer.write({greeting!r});"
    "sys.stdout.buffer.flush();"
    'exec(compile(zlib.decompress(base64.b64decode("{packed}")),"<ranksafe>","exec"))\n'
)


def opening(program: str, request: Mapping[str, Any]) -> bytes:
    """What is written first: the loader with the program in it, then the request as a line of JSON."""
    packed = base64.b64encode(zlib.compress(program.encode())).decode()
    loader = _LOADER.format(old=TOO_OLD, greeting=GREETING, packed=packed)
    return loader.encode() + json.dumps(request).encode() + b"\n"
