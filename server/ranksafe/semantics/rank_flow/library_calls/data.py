"""Data sets, samplers and loaders, and what cuts data into shares."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.library_calls.iteration import element
from ranksafe.semantics.rank_flow.library_calls.parts import of_splits
from ranksafe.semantics.rank_flow.values import (
    Known,
    Many,
    Sameness,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
    evenness,
    length_of,
    origin_of,
)

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.run import Run

_SETS_UP_LOADERS = frozenset(
    {"lightning.fabric.Fabric.setup_dataloaders", "lightning.fabric.Fabric._setup_dataloader"}
)
_DATA_SETS = "torch.utils.data."


def of_data(run: Run, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    """What a call that makes or cuts data returns; None for other calls."""
    last = name.rpartition(".")[2]
    if name == "torch.utils.data.Subset" and len(arguments) > 1:
        length = length_of(arguments[1])
        return Unknown(
            length=evenness(arguments[1]),
            origin=origin_of(arguments[1]),
            steps=None if isinstance(length, Sameness) else length,
        )
    if last == "DistributedSampler":
        whole = arguments[0] if arguments else None
        uneven = isinstance(whole, (Many, Unknown)) and whole.length.varies
        return Thing(
            "loader",
            node=node,
            module=run.module,
            detail="sharded",
            length=evenness(whole) if whole is not None and uneven else Sameness.UNKNOWN,
            origin=origin_of(whole) if whole is not None and uneven else None,
        )
    parts = of_splits(run, node, name, arguments)
    if parts is not None:
        return parts
    made = _data_set(name, arguments)
    if made is not None:
        return made
    if name in _SETS_UP_LOADERS:
        return _set_up(run, node)
    if name.startswith("transformers.Trainer.get_") and name.endswith("_dataloader"):
        return Thing("loader", node=node, module=run.module, detail="sharded")
    if last == "split_between_processes" and name.startswith("accelerate.") and arguments:
        return _split(run, node, arguments)
    if name == "math.ceil" and arguments:
        found = combined(*arguments)
        return found if found.share is Share.UNEVEN else replace(found, share=Share.ROUNDED)
    if last == "DataLoader" or name == "torch.utils.data.DataLoader":
        return _loader(run, node, arguments)
    return None


def _set_up(run: Run, node: ast.Call) -> Value | None:
    """The loaders that a Fabric is given, with distributed samplers (lightning 2.6.6, fabric/fabric.py)."""
    if any(
        item.arg == "use_distributed_sampler" and not getattr(item.value, "value", True)
        for item in node.keywords
    ):
        return None
    if any(isinstance(item, ast.Starred) for item in node.args):
        return None
    made = tuple(Thing("loader", node=node, module=run.module, detail="sharded") for _ in node.args)
    return made[0] if len(made) == 1 else Many(made)


def _split(run: Run, node: ast.Call, arguments: list[Value]) -> Value | None:
    """The share of ``split_between_processes``: the first ranks get an item more where the length does not divide.

    With ``apply_padding=True`` all shares are as long (accelerate 1.15.0, state.py).
    """
    padded = [item.value for item in node.keywords if item.arg == "apply_padding"]
    if len(node.args) > 1 or any(
        not isinstance(item, ast.Constant) or bool(item.value) for item in padded
    ):
        return None
    whole = length_of(arguments[0])
    if not isinstance(whole, Sameness) and whole % run.world.size == 0:
        return None
    origin = run.origin(node, Sameness.RANK)
    return Unknown(Sameness.DATA, origin, length=Sameness.RANK, share=Share.UNEVEN)


def _data_set(name: str, arguments: list[Value]) -> Value | None:
    """A data set that is as long as what it is made of; None for other calls."""
    if not name.startswith(_DATA_SETS) or not arguments:
        return None
    last, given = name.rpartition(".")[2], arguments[0]
    if last in ("TensorDataset", "StackDataset"):
        rows = length_of(given)
        return Unknown(
            length=evenness(given),
            origin=origin_of(given),
            steps=None if isinstance(rows, Sameness) else rows,
        )
    if last not in ("ConcatDataset", "ChainDataset"):
        return None
    parts = given.items if isinstance(given, Many) else ()
    exact = [length for length in map(length_of, parts) if not isinstance(length, Sameness)]
    each = element(given)
    uneven = [value for value in (given, *parts, each) if evenness(value).varies]
    return Unknown(
        length=max(map(evenness, uneven), default=Sameness.UNKNOWN),
        origin=origin_of(*uneven),
        steps=sum(exact) if parts and len(exact) == len(parts) and not uneven else None,
    )


def _loader(run: Run, node: ast.Call, arguments: list[Value]) -> Value:
    given = {
        item.arg: value
        for item, value in zip(node.keywords, arguments[len(node.args) :], strict=True)
    }
    written = {item.arg: run.module.text_of(item.value) for item in node.keywords}
    dataset = arguments[0] if node.args else given.get("dataset")
    sampler, batch_sampler = given.get("sampler"), given.get("batch_sampler")
    source = dataset
    size: Value | None = given.get("batch_size", Known(1))
    detail = "plain"
    if batch_sampler is not None:
        source, size = batch_sampler, None
    elif sampler is not None and written["sampler"] != "None":
        text = written["sampler"]
        detail = "sharded" if "Distributed" in text or "sampler" in text else "plain"
        source = sampler
    length, steps, origin = Sameness.UNKNOWN, None, None
    if isinstance(source, (Unknown, Many)):
        length, origin = source.length, origin_of(source)
        steps = _batches(length_of(source), size, written)
    elif isinstance(source, Thing) and source.kind == "loader" and source.length.varies:
        # A sampler shares out as many as the data set has.
        length, origin = source.length, source.origin
    drops = written.get("drop_last", "False") != "False" and batch_sampler is None
    if drops and steps is None:
        # What the shares differ by is dropped, most often.
        length = Sameness.UNKNOWN
    if isinstance(source, Unknown) and length.varies:
        detail = "sharded"
    return Thing(
        "loader",
        node=node,
        module=run.module,
        detail=detail,
        length=length,
        origin=origin,
        steps=steps,
    )


def _batches(
    samples: Sameness | int, size: Value | None, written: dict[str | None, str]
) -> int | None:
    """How many batches a loader makes of so many samples, where that is known."""
    if isinstance(samples, Sameness) or written.get("num_workers", "0") != "0":
        return None
    if size is None:
        return samples
    if not isinstance(size, Known) or not isinstance(size.constant, int) or size.constant < 1:
        return samples if isinstance(size, Known) and size.constant is None else None
    if written.get("drop_last", "False") == "True":
        return samples // size.constant
    return -(-samples // size.constant)
