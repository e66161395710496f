"""Ordinary mistakes, each named by the kind that a log with its message must be given.

Runs in the environment with torch, as one process: prints for each mistake one line of JSON with its kind and what was
raised. A name is a kind, with a number where a kind has several.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset

_FOLDER = Path(tempfile.mkdtemp())


class Items(Dataset[Any]):
    """A data set of given items."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class Stream(IterableDataset[int]):
    """A data set without an index."""

    def __iter__(self) -> Any:
        return iter(range(4))


class Counting(nn.Module):
    """A block whose forward pass depends on how often it ran."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 6)])
        self.ran = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.ran += 1
        return self.layers[self.ran - 1](x).relu()


class WrongGradient(torch.autograd.Function):
    """Returns a gradient of another size than its input's."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        return torch.ones(3)


def _schedule() -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=2)
    for _ in range(4):
        optimizer.step()
        schedule.step()


def _recomputed() -> None:
    block = Counting()
    checkpoint(block, torch.ones(2, 4, requires_grad=True), use_reentrant=False).sum().backward()


def _broken(name: str, opened: Callable[[Path], Any]) -> Callable[[], Any]:
    def mistake() -> None:
        path = _FOLDER / name
        path.write_bytes(b"not an archive, and long enough to be read as the head of one" * 9)
        opened(path)

    return mistake


def _read_gzip(path: Path) -> bytes:
    with gzip.open(path) as file:
        return file.read()


def _table_is_empty() -> None:
    import pandas as pd

    path = _FOLDER / "empty.csv"
    path.write_text("")
    pd.read_csv(path)


def _table() -> Any:
    from datasets import Dataset as Table

    return Table.from_dict({"text": ["a", "b"]})


def _fewer_shards() -> None:
    from datasets.distributed import split_dataset_by_node

    next(iter(split_dataset_by_node(_table().to_iterable_dataset(), 0, 2, strategy="shards")))


def _batch_size_search() -> None:
    from accelerate.utils import find_executable_batch_size

    @find_executable_batch_size(starting_batch_size=2)
    def train(batch_size: int) -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    train()


def _mesh_and_processes() -> None:
    from accelerate import Accelerator
    from accelerate.parallelism_config import ParallelismConfig

    Accelerator(cpu=True, parallelism_config=ParallelismConfig(dp_shard_size=4))


def _missing_in_checkpoint() -> None:
    import torch.distributed.checkpoint as dcp

    dcp.save({"a": torch.zeros(2)}, checkpoint_id=_FOLDER / "saved")
    dcp.load({"b": torch.zeros(2)}, checkpoint_id=_FOLDER / "saved")


def _other_size_in_checkpoint() -> None:
    import torch.distributed.checkpoint as dcp

    dcp.save({"a": torch.zeros(2)}, checkpoint_id=_FOLDER / "sized")
    dcp.load({"a": torch.zeros(3)}, checkpoint_id=_FOLDER / "sized")


MISTAKES: dict[str, Callable[[], Any]] = {
    "learning-rate-schedule 1": _schedule,
    "learning-rate-schedule 3": lambda: torch.optim.lr_scheduler.OneCycleLR(
        torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1), max_lr=0.1, total_steps=0
    ),
    "checkpointing-recomputes-other": _recomputed,
    "gradient-mismatch": lambda: (
        WrongGradient.apply(torch.ones(2, requires_grad=True)).sum().backward()
    ),
    "data-loader-arguments 1": lambda: DataLoader(Stream(), shuffle=True),
    "sampler-rank": lambda: DistributedSampler(Items(1), num_replicas=2, rank=2),
    "damaged-data 1": _broken("a.zip", zipfile.ZipFile),
    "damaged-data 2": _broken("a.gz", _read_gzip),
    "damaged-data 3": _broken("a.tar", tarfile.open),
    "damaged-data 4": _table_is_empty,
    "fewer-shards-than-ranks 1": _fewer_shards,
    "fewer-shards-than-ranks 2": lambda: _table().to_iterable_dataset(num_shards=4),
    "ddp-arguments 1": lambda: DistributedDataParallel(nn.Linear(1, 1), device_ids=[0, 1]),
    "ddp-device": lambda: DistributedDataParallel(nn.Linear(1, 1), device_ids=[0]),
    "ddp-arguments 2": lambda: DistributedDataParallel(nn.LazyLinear(2)),
    "nothing-to-train-in-ddp": lambda: DistributedDataParallel(nn.ReLU()),
    "mesh-size 1": lambda: init_device_mesh("cpu", (2,)),
    "mesh-size 2": _mesh_and_processes,
    "group-rank": lambda: dist.new_group([0, 1]),
    "distributed-checkpoint 1": _missing_in_checkpoint,
    "distributed-checkpoint 2": _other_size_in_checkpoint,
    "cuda-out-of-memory": _batch_size_search,
}


def main() -> None:
    """Make every mistake, and tell what came of it."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(random.randint(20000, 30000)))
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    for name, mistake in MISTAKES.items():
        try:
            mistake()
        except BaseException as error:
            raised: str | None = f"{type(error).__name__}: {error}"
        else:
            raised = None
        print("MISTAKE " + json.dumps({"name": name, "raised": raised}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
