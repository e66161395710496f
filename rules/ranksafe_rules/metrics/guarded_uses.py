"""Whether what is opened on every rank is used on some ranks only, as far as its uses can be seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import may_run_on_every_rank
from ranksafe_rules._shared.trails.follow import trail_of
from ranksafe_rules._shared.trails.holder import Holder

_NO_EVENTS: Final = frozenset({"close", "flush", "log_dir", "logdir", "get_logdir"})
"""What a SummaryWriter can be asked for without an event being written (torch 2.13.0, tensorboardX 2.6)."""
_MESSAGES: Final = frozenset(
    {"debug", "info", "warning", "warn", "error", "critical", "exception", "log"}
)
"""The methods of a logger that write a message (CPython 3.13, `logging/__init__.py`)."""
_LOGGER: Final = "logging.getLogger"


def writes_on_some_ranks(module: Module, writer: ast.Call) -> bool:
    """Whether every use of a SummaryWriter that writes events, of those that can be seen, is kept to some ranks: the
    others leave a file without events."""
    uses = [use for use, word in _uses(module, writer) if word not in _NO_EVENTS]
    return bool(uses) and all(map(_is_kept_to_some_ranks, uses))


def logs_on_some_ranks(module: Module, handler: ast.Call) -> bool:
    """Whether most messages to the loggers that a log file is added to are kept to some ranks, of those that can be
    seen. Opened anew ("w"), the file loses on each rank what the others have written before."""
    mode = module.argument(handler, "mode", 1)
    if mode is not None and mode.only_constant() != "a":
        return False
    kept = [
        _is_kept_to_some_ranks(use)
        for made in _loggers(module, handler)
        for use, word in _uses(module, made)
        if word in _MESSAGES
    ]
    return sum(kept) * 2 > len(kept)


def _loggers(module: Module, handler: ast.Call) -> Iterator[ast.Call]:
    """The calls that give the loggers to which a handler is added."""
    for adding in module.calls_written("addHandler"):
        added = module.argument_node(adding, "hdlr", 0)
        if added is None or not isinstance(adding.func, ast.Attribute):
            continue
        if any(value.node is handler for value in module.values(added).known):
            for value in module.values(adding.func.value).known:
                if isinstance(value.node, ast.Call):
                    if module.qualified_name(value.node.func) == _LOGGER:
                        yield value.node


def _uses(module: Module, made: ast.Call) -> Iterator[tuple[Holder, str]]:
    """The attributes that are read of an object, wherever it comes; none where it comes to too many places."""
    trail = trail_of(module, made)
    for holder in () if trail.given_up else trail.holders:
        parent = holder.module.parent(holder.node)
        if not holder.slots and isinstance(parent, ast.Attribute):
            yield holder, parent.attr


def _is_kept_to_some_ranks(use: Holder) -> bool:
    """Whether a condition keeps ranks out of a use, or of a call that brought the object there."""
    return not may_run_on_every_rank(use.module, use.node) or any(
        not may_run_on_every_rank(entry.module, entry.call) for entry in use.entries
    )
