"""Python's own parser, one call at a time."""

from __future__ import annotations

import ast
import threading

_ONE_AT_A_TIME = threading.Lock()


def parse_python(text: str) -> ast.Module:
    """`ast.parse`, safe to call from several threads.

    CPython 3.11 counts the depth of the tree it builds in a place that all threads share: when the garbage collector
    lets another thread parse meanwhile, it raises "SystemError: AST constructor recursion depth mismatch".

    Raises SyntaxError, ValueError, RecursionError and MemoryError as `ast.parse` does.
    """
    with _ONE_AT_A_TIME:
        return ast.parse(text)
