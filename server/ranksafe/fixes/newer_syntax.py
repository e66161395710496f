"""Syntax that Python has, but not the Python that ranksafe runs with."""

from __future__ import annotations


def is_newer_syntax(text: str) -> bool:
    """Whether a text that does not parse here is one of a newer Python: libcst's grammar is that of its release."""
    import libcst  # here: it is needed for few files, and takes longer to import than a file to check

    try:
        libcst.parse_module(text)
    except Exception:  # its own errors and, for some broken texts, those of its part in Rust
        return False
    return True
