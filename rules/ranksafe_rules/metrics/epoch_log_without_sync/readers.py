"""Who reads a logged value: callbacks and schedulers that monitor it, programs that ask for it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ranksafe.semantics.module import Module

_MONITOR: Final = "monitor"
_METRICS: Final = "callback_metrics"
"""Where a Trainer keeps what was logged for whoever asks (lightning 2.6.6 `trainer/trainer.py`)."""
_MONITORED: Final = re.compile(
    r"""monitor["']?\s{0,9}(?::\s{0,9}\w{1,40}\s{0,9})?[:=]\s{0,9}["']([^"'\n]{1,200})["']"""
)
"""``EarlyStopping(monitor="val_loss")``, ``{"monitor": "val_loss"}``, ``monitor: str = "val_loss"``."""


def is_monitored(module: Module, call: ast.Call) -> bool:
    """Whether the project shows something that monitors what a call of `log` or `log_dict` logs."""
    names = _names(module, call)
    return any(module.text_says(_Monitors(name)) for name in names) or bool(
        names and not names.isdisjoint(_monitored_elsewhere(module))
    )


@dataclass(frozen=True)
class _Monitors:
    """Asks a text whether it has a name monitored; equal for equal names, so that it is asked once."""

    name: str

    def __call__(self, text: str) -> bool:
        return self.name in _found_in(text)


def is_shown_only(module: Module, call: ast.Call) -> bool:
    """Whether a value goes nowhere but to the progress bar: no logger gets it, nothing monitors it, nobody asks."""
    logger = module.argument(call, "logger")
    if logger is None or logger.only_constant() is not False or is_monitored(module, call):
        return False
    return not (module.text_says(_asks_for_metrics) or module.texts_saying(_METRICS))


def _names(module: Module, call: ast.Call) -> set[str]:
    """The names under which it is logged, as far as they are written there."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "log_dict":
        given = module.argument_node(call, "dictionary", 0)
        keys = given.keys if isinstance(given, ast.Dict) else []
    else:
        keys = [module.argument_node(call, "name", 0)]
    return {
        value
        for key in keys
        if key is not None
        for value in module.values(key).constants()
        if isinstance(value, str)
    }


def _monitored_elsewhere(module: Module) -> frozenset[str]:
    """The names that other files of the project have monitored."""
    if "monitored names" not in module.answers:
        module.answers["monitored names"] = frozenset(
            name for text in module.texts_saying(_MONITOR) for name in _found_in(text)
        )
    answer: frozenset[str] = module.answers["monitored names"]
    return answer


@lru_cache(maxsize=4)
def _found_in(text: str) -> frozenset[str]:
    return frozenset(_MONITORED.findall(text))


def _asks_for_metrics(text: str) -> bool:
    return _METRICS in text
