"""Standard input, output and error as this process was given them: of any encoding, closed, or no longer read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO


def open_closed_streams() -> None:
    """Where the caller closed them (``>&-``), Python has None, and the next file that is opened would be standard
    output to all that is started."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nothing = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 (for the process's lifetime)
            setattr(sys, name, nothing)


def speak_utf8() -> None:
    """Messages and source lines are not ASCII; a terminal or pipe with another encoding gets what it can show."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            encoding = (stream.encoding or "").lower().replace("_", "-")
            is_ascii = encoding in ("ascii", "us-ascii", "ansi-x3.4-1968")
            reconfigure(
                errors="backslashreplace", encoding="utf-8" if is_ascii else stream.encoding
            )


def write_as_printed(stream: TextIO, text: str) -> None:
    """Write what a script has printed, bytes that are no text included (in ``text`` as surrogates, PEP 383)."""
    try:
        data = text.encode(stream.encoding or "utf-8", "surrogateescape")
    except UnicodeEncodeError:
        stream.write(text)
    else:
        stream.flush()
        stream.buffer.write(data)
    stream.flush()


def drop_output() -> None:
    """What is still buffered cannot be written either: give the interpreter nothing to complain about."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
