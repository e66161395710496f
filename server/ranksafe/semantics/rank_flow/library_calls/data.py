"""Data sets, samplers and loaders, and what cuts data into shares."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.values import (
    Known,
    Sameness,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
    length_of,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.run import Run

_SPLITS = frozenset({"numpy.array_split", "torch.tensor_split", "torch.chunk"})


def of_data(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    """What a call that makes or cuts data returns; None for other calls."""
    last = name.rpartition(".")[2]
    if name == "torch.utils.data.Subset" and len(arguments) > 1:
        length = length_of(arguments[1])
        kept = length if isinstance(length, Sameness) else Sameness.UNKNOWN
        return Unknown(length=kept, origin=origin_of(arguments[1]))
    if last == "DistributedSampler":
        return Thing("loader", node=node, module=run.module, detail="sharded")
    if name in _SPLITS and len(arguments) > 1:
        by_size = isinstance(arguments[1], Known) and arguments[1].constant == run.world.size
        part = Unknown(
            Sameness.RANK,
            run.origin(node, Sameness.RANK),
            length=Sameness.RANK if by_size else Sameness.UNKNOWN,
        )
        return Unknown(share=Share.UNEVEN, each=part)
    if name == "math.ceil" and arguments:
        return replace(combined(*arguments), share=Share.UNEVEN)
    if last == "DataLoader" or name == "torch.utils.data.DataLoader":
        return _loader(run, node, arguments[0] if arguments else None)
    return None


def _loader(run: Run, node: ast.Call, dataset: Value | None) -> Value:
    sampler = next((item.value for item in node.keywords if item.arg == "sampler"), None)
    detail = "plain"
    if sampler is not None and not (isinstance(sampler, ast.Constant) and sampler.value is None):
        written = run.module.text_of(sampler)
        detail = "sharded" if "Distributed" in written or "sampler" in written else "plain"
    length, origin = Sameness.UNKNOWN, None
    if isinstance(dataset, Unknown) and dataset.length.varies:
        length, origin = dataset.length, dataset.origin
    return Thing(
        "loader",
        node=node,
        module=run.module,
        detail=detail,
        length=length,
        origin=origin,
    )
