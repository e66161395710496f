"""Defaults of the options that a file adds to a parser of argparse."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.semantics.module import Module


def option_default(module: Module, name: str) -> object:
    """What ``args.name`` is where the user gives nothing; None where the file adds no such option, or with no constant
    for a default."""
    for call, _ in options_named(module, name):
        default = next((word.value for word in call.keywords if word.arg == "default"), None)
        if default is not None:
            return module.values(default).only_constant()
    return None


def options_named(module: Module, name: str) -> Iterator[tuple[ast.Call, list[str]]]:
    """The calls that add an option that is kept as ``name``, with its spellings."""
    for call in module.calls_written("add_argument"):
        given = {word.arg: word.value for word in call.keywords}
        names = [given["dest"]] if "dest" in given else call.args
        if any(_destination(option) == name for option in names):
            yield call, [text for option in call.args if (text := _written(option)) is not None]


def _destination(option: ast.expr) -> str | None:
    """Where argparse keeps ``--batch-size``."""
    written = _written(option)
    return None if written is None else written.lstrip("-").replace("-", "_")


def _written(option: ast.expr) -> str | None:
    written = option.value if isinstance(option, ast.Constant) else None
    return written if isinstance(written, str) else None
