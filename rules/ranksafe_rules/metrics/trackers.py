"""Calls that start a run of an experiment tracker, or open a log, on every rank."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import runs_on_every_rank
from ranksafe_rules._shared.rank_words import asks_for_the_rank, identifiers
from ranksafe_rules._shared.same_path import is_same_on_all_ranks
from ranksafe_rules.metrics.guarded_uses import logs_on_some_ranks, writes_on_some_ranks


class Kind(Enum):
    """What every rank starts."""

    RUN = "run"
    """A run of its own on a server."""
    EVENTS = "events"
    """An event file of its own in one folder, which TensorBoard draws as one curve."""
    LOG = "log"
    """Lines of its own in one text file."""


_RUNS: Final = (
    "wandb.init",
    "mlflow.start_run",
    "swanlab.init",
    "neptune.init_run",
    "comet_ml.Experiment",
    "comet_ml.start",
    "clearml.Task.init",
    "aim.Run",
)
_EVENTS: Final = {
    "torch.utils.tensorboard.SummaryWriter": ("log_dir", 0),
    "torch.utils.tensorboard.writer.SummaryWriter": ("log_dir", 0),
    "tensorboardX.SummaryWriter": ("logdir", 0),
}
_LOGS: Final = {"logging.FileHandler": ("filename", 0)}
_PAST_ACCELERATE: Final = tuple(
    f"logging.{word}"
    for word in ("getLogger", "debug", "info", "warning", "error", "critical", "exception", "log")
)
_LEVELS: Final[Mapping[str, tuple[str, int | None]]] = {
    "basicConfig": ("level", None),
    "setLevel": ("level", 0),
}
"""What sets the level of loggers and handlers, with the parameter for it (CPython 3.13, `logging/__init__.py`)."""
_SETTING_UP: Final = frozenset({"setLevel", "addHandler", "removeHandler", "handlers"})
MENTIONS: Final = frozenset(
    {
        "wandb",
        "mlflow",
        "swanlab",
        "neptune",
        "comet_ml",
        "clearml",
        "aim",
        "SummaryWriter",
        "FileHandler",
    }
)
_ONE_PER_RANK: Final = frozenset({"group", "nested", "settings"})
"""Arguments with which runs of several processes are kept together on purpose (wandb's guide to distributed training
names ``group`` and ``Settings(mode="shared")``)."""
_SWITCH: Final = re.compile(r"""["']WANDB_(MODE|DISABLED)["']""")


@dataclass(frozen=True, slots=True)
class Start:
    """One call that starts a tracker on every rank."""

    call: ast.Call
    kind: Kind


def starts_on_every_rank(module: Module, launch: LaunchContext) -> Iterator[Start]:
    """The calls of the file that do, in source order; those left out whose writers only some ranks use."""
    found = [
        start
        for start in _starts(module)
        if runs_on_every_rank(module, start.call, launch) and not _is_used_on_some(module, start)
    ]
    yield from sorted(found, key=lambda start: module.order_of(start.call))


def _is_used_on_some(module: Module, start: Start) -> bool:
    if start.kind is Kind.EVENTS:
        return writes_on_some_ranks(module, start.call)
    return start.kind is Kind.LOG and logs_on_some_ranks(module, start.call)


def _starts(module: Module) -> Iterator[Start]:
    for call in module.calls(*_RUNS):
        if not _is_meant(module, call):
            yield Start(call, Kind.RUN)
    for table, kind in ((_EVENTS, Kind.EVENTS), (_LOGS, Kind.LOG)):
        for name, (parameter, position) in table.items():
            for call in module.calls(name):
                path = module.argument_node(call, parameter, position)
                if path is None and kind is Kind.LOG:
                    continue
                if kind is Kind.LOG and (_only_main_logs(module) or _levels_differ(module)):
                    continue
                if path is None or is_same_on_all_ranks(module, path):
                    if not any(asks_for_the_rank(module, item) for item in _given(call)):
                        yield Start(call, kind)


def _is_meant(module: Module, call: ast.Call) -> bool:
    """Whether an argument tells ranks apart, keeps their runs together, or switches the tracker off."""
    if any(word.arg in _ONE_PER_RANK or word.arg is None for word in call.keywords):
        return True
    mode = module.argument(call, "mode")
    if mode is not None and mode.only_constant() in ("disabled", "offline", "shared"):
        return True
    if module.text_says(_switches_off):
        return True
    return any(asks_for_the_rank(module, item) for item in _given(call)) or any(
        "disabled" in word for item in _given(call) for word in identifiers(item)
    )


def _only_main_logs(module: Module) -> bool:
    """Whether the file writes messages through accelerate's logger, which passes on those of the main process unless it
    is told otherwise for one (accelerate 1.15.0 `logging.py`), and none past it."""
    if not any(module.calls("accelerate.logging.get_logger")):
        return False
    others = module.calls(*_PAST_ACCELERATE)
    return all(getattr(module.parent(call), "attr", "") in _SETTING_UP for call in others)


def _levels_differ(module: Module) -> bool:
    """Whether the file has some ranks write fewer messages than others: a level that depends on the rank, or is set on
    some ranks only."""
    for word, (parameter, position) in _LEVELS.items():
        for call in module.calls_written(word):
            level = module.argument_node(call, parameter, position)
            if level is not None and (
                asks_for_the_rank(module, level)
                or any(asks_for_the_rank(module, guard.test) for guard in module.guards(call))
            ):
                return True
    return False


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords)]


def _switches_off(text: str) -> bool:
    return _SWITCH.search(text) is not None
