"""The forms in which `ranksafe check` prints its findings: one module each, all with ``render``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ranksafe.checker.registry import Registry
from ranksafe.cli.output import as_json, github, gitlab, sarif
from ranksafe.cli.results import FileResult
from ranksafe.localization import Language

Renderer = Callable[[Sequence[FileResult], Registry, Language], str]

MACHINE_FORMATS: Final[dict[str, Renderer]] = {
    "json": as_json.render,
    "github": github.render,
    "gitlab": gitlab.render,
    "sarif": sarif.render,
}
"""Formats that programs read; ``text`` (`ranksafe.cli.output.text`) is for people."""
