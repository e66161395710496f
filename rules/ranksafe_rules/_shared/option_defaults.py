"""Defaults of the options that a file adds to a parser of argparse."""

from __future__ import annotations

import ast

from ranksafe.semantics.module import Module


def option_default(module: Module, name: str) -> object:
    """What ``args.name`` is where the user gives nothing; None where the file adds no such option, or with no constant
    for a default."""
    for call in module.calls_written("add_argument"):
        given = {word.arg: word.value for word in call.keywords}
        names = [given["dest"]] if "dest" in given else call.args
        if "default" in given and any(_destination(option) == name for option in names):
            return module.values(given["default"]).only_constant()
    return None


def _destination(option: ast.expr) -> str | None:
    """Where argparse keeps ``--batch-size``."""
    written = option.value if isinstance(option, ast.Constant) else None
    return written.lstrip("-").replace("-", "_") if isinstance(written, str) else None
