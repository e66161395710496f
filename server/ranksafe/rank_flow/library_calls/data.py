"""Data sets, samplers and loaders, and what cuts data into shares."""

from __future__ import annotations

import ast

from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.tables import functions_that, named
from ranksafe.rank_flow.values import (
    NOTHING_KNOWN,
    Abstract,
    Constant,
    Object,
    Sequence,
    Share,
    Value,
    Varies,
    combined,
    evenness,
    length_of,
    origin_of,
)


def of_data(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    """What a call that makes or cuts data returns; None for other calls."""
    last = name.rpartition(".")[2]
    if name == "torch.utils.data.Subset" and len(arguments) > 1:
        length = length_of(arguments[1])
        return Abstract(
            length=evenness(arguments[1]),
            origin=origin_of(arguments[1]),
            steps=None if isinstance(length, Varies) else length,
        )
    if last == "DistributedSampler":
        return Object("loader", node=node, module=run.module, detail="sharded")
    if name in functions_that("splits") and len(arguments) > 1:
        by_size = isinstance(arguments[1], Constant) and arguments[1].constant == run.world.size
        part = Abstract(
            Varies.BY_RANK,
            run.origin(node, Varies.BY_RANK),
            length=Varies.BY_RANK if by_size else Varies.PERHAPS,
        )
        return Abstract(share=Share.UNEVEN, each=part)
    if name == "math.ceil" and arguments:
        return combined(*arguments).changed(share=Share.ROUNDED)
    if last == "DataLoader" or name == "torch.utils.data.DataLoader":
        return _loader(run, node, arguments)
    return None


def _loader(run: Run, node: ast.Call, arguments: list[Value]) -> Value:
    given = {
        item.arg: value
        for item, value in zip(node.keywords, arguments[len(node.args) :], strict=True)
    }
    written = {item.arg: run.module.text_of(item.value) for item in node.keywords}
    dataset = arguments[0] if node.args else given.get("dataset")
    sampler, batch_sampler = given.get("sampler"), given.get("batch_sampler")
    source = dataset
    size: Value | None = given.get("batch_size", Constant(1))
    detail = "plain"
    if batch_sampler is not None:
        source, size = batch_sampler, None
    elif sampler is not None and not (isinstance(sampler, Constant) and sampler.constant is None):
        by_name = written["sampler"].endswith(tuple(named("sampler ending")))
        shards = isinstance(sampler, Object) or (sampler is NOTHING_KNOWN and by_name)
        detail = "sharded" if shards else "plain"
        source = sampler
    length, steps, origin = Varies.PERHAPS, None, None
    if isinstance(source, (Abstract, Sequence)):
        length, origin = source.length, origin_of(source)
        steps = _batches(length_of(source), size, written)
    drops = written.get("drop_last", "False") != "False" and batch_sampler is None
    if drops and steps is None:
        # What the shares differ by is dropped, most often.
        length = Varies.PERHAPS
    if isinstance(source, Abstract) and length.certain:
        detail = "sharded"
    return Object(
        "loader",
        node=node,
        module=run.module,
        detail=detail,
        length=length,
        origin=origin,
        steps=steps,
    )


def _batches(
    samples: Varies | int, size: Value | None, written: dict[str | None, str]
) -> int | None:
    """How many batches a loader makes of so many samples, where that is known."""
    if isinstance(samples, Varies) or written.get("num_workers", "0") != "0":
        return None
    if size is None:
        return samples
    if not isinstance(size, Constant) or not isinstance(size.constant, int) or size.constant < 1:
        return samples if isinstance(size, Constant) and size.constant is None else None
    if written.get("drop_last", "False") == "True":
        return samples // size.constant
    return -(-samples // size.constant)
