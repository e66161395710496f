"""The table of collective operations (``collectives.json``): data with sources, read once."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ranksafe.semantics.libraries import canonical


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of an operation: its keyword and 0-based position (None: keyword only)."""

    keyword: str
    position: int | None

    def of(self, call: ast.Call) -> ast.expr | None:
        """The argument's expression in a call, as written."""
        for item in call.keywords:
            if item.arg == self.keyword:
                return item.value
        if self.position is not None and self.position < len(call.args):
            if not any(isinstance(item, ast.Starred) for item in call.args[: self.position + 1]):
                return call.args[self.position]
        return None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation that several ranks have to perform together."""

    name: str
    """Canonical dotted name."""
    kind: str
    """``collective``, ``point-to-point``, ``group-construction``, ``wrap``, ``step``."""
    word: str
    """Short name shown to users."""
    group: Parameter | None
    result: Parameter | str | None
    """The argument that is equal on all ranks afterwards, ``return``, or None."""
    root: Parameter | None
    complete_on_root: bool
    root_default: int | None
    """The root when the call names none."""
    asynchronous: Parameter | None
    always_asynchronous: bool
    only: str | None
    """``sharded``: performs collectives only for FSDP or ZeRO-3 models; ``wrapped``: only for wrapped models."""
    output: Parameter | None = None
    """The argument that is written to."""


def _parameter(data: dict[str, Any] | None) -> Parameter | None:
    if not data:
        return None
    return Parameter(data["keyword"], data.get("position", data.get("argument")))


def _operation(data: dict[str, Any]) -> Operation:
    result = data.get("result")
    always = bool(data.get("always_async"))
    return Operation(
        name=data["name"],
        kind=data["kind"],
        word=data["operation"],
        group=_parameter(data.get("group")),
        result=_parameter(result) if isinstance(result, dict) else result,
        root=_parameter(data.get("root")),
        complete_on_root=data.get("complete_on") == "root",
        root_default=(data.get("root") or {}).get("default"),
        asynchronous=None if always else _parameter(data.get("async")),
        always_asynchronous=always,
        only=data.get("only"),
        output=_parameter(data.get("output")),
    )


@cache
def operations() -> dict[str, Operation]:
    """All operations by canonical name."""
    text = files("ranksafe.semantics.rank_flow").joinpath("collectives.json").read_text("utf-8")
    loaded = json.loads(text)
    entries = loaded["operations"] if isinstance(loaded, dict) else loaded
    found = {}
    for entry in entries:
        operation = _operation(entry)
        found[operation.name] = operation
        found[canonical(operation.name)] = operation
    return found


_OFTEN_OTHERWISE = frozenset(
    {
        "backward", "clip_gradients", "compute", "evaluate", "fit", "forward", "generate", "initialize", "load",
        "load_checkpoint", "load_state_dict", "predict", "prediction_step", "prepare", "profile", "push_to_hub",
        "save", "save_checkpoint", "save_model", "setup", "state_dict", "step", "sync", "test", "train",
        "training_step", "validate", "clip_grad_norm_", "get_state_dict", "save_state", "load_state",
        "evaluation_loop", "set_state_dict", "optim_state_dict", "redistribute", "_save_checkpoint",
    }
)  # fmt: skip
"""Names that mean something else in most files, unless a wrapped model is near."""
_WRAPPERS = re.compile(
    r"DistributedDataParallel|\bfsdp|\bDDP\b|FullyShardedDataParallel|\bFSDP\b|fully_shard|ccelerat|deepspeed|\bFabric\b|"
    r"torchmetrics|\bpytorch_lightning\b|\blightning\b|distributed\.checkpoint|DTensor|distribute_tensor"
)


@cache
def words(wrapping: bool) -> frozenset[str]:
    """Last segments of the operations' names: a function without any of them performs no collective.

    ``wrapping``: whether the file may have wrapped models, see `may_wrap`.
    """
    found = frozenset(name.rpartition(".")[2] for name in operations())
    return found | _OFTEN_OTHERWISE if wrapping else found - _OFTEN_OTHERWISE


def may_wrap(text: str) -> bool:
    """Whether a file names something that wraps models or synchronises by itself."""
    return _WRAPPERS.search(text) is not None
