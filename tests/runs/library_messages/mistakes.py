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

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, random_split

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


def _first_batch(*items: Any) -> Any:
    return next(iter(DataLoader(Items(*items), batch_size=len(items))))


def _condition() -> None:
    if torch.zeros(2) == torch.zeros(2):
        raise AssertionError


def _made_for_inference() -> None:
    with torch.inference_mode():
        x = torch.ones(2)
    (x * nn.Parameter(torch.ones(2))).sum().backward()


def _schedule() -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=2)
    for _ in range(4):
        optimizer.step()
        schedule.step()


def _resumed_schedule() -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    torch.optim.lr_scheduler.StepLR(optimizer, 1, last_epoch=3)


def _unscaled_twice() -> None:
    scaler = torch.amp.GradScaler("cpu")
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler.scale(layer(torch.ones(1, 2)).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def _nothing_scaled() -> None:
    scaler = torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    scaler.scale(torch.ones(1))
    scaler.step(optimizer)


def _recomputed() -> None:
    block = Counting()
    checkpoint(block, torch.ones(2, 4, requires_grad=True), use_reentrant=False).sum().backward()


def _changed_in_place() -> None:
    weight = nn.Parameter(torch.zeros(2))
    weight += 1


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


def _table_is_ragged() -> None:
    import pandas as pd

    path = _FOLDER / "ragged.csv"
    path.write_text("a,b\n1,2\n1,2,3\n")
    pd.read_csv(path)


def _small_model() -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    return BertForSequenceClassification(
        BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    )


def _no_loss() -> None:
    from transformers import Trainer, TrainingArguments

    settings = TrainingArguments(str(_FOLDER), report_to=[], use_cpu=True, max_steps=1)
    Trainer(
        _small_model(), settings, train_dataset=Items({"input_ids": torch.ones(3).long()})
    ).train()


def _no_data() -> None:
    from transformers import Trainer, TrainingArguments

    Trainer(_small_model(), TrainingArguments(str(_FOLDER), report_to=[], use_cpu=True)).train()


def _no_tokens() -> None:
    _small_model()(labels=torch.zeros(2).long())


def _loaded(path: Path) -> Any:
    from transformers import AutoModel

    return AutoModel.from_pretrained(path, local_files_only=True)


def _not_a_model() -> None:
    folder = _FOLDER / "folder"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    _loaded(folder)


def _no_columns() -> None:
    from transformers import Trainer, TrainingArguments

    settings = TrainingArguments(str(_FOLDER), report_to=[], use_cpu=True, max_steps=1)
    Trainer(_small_model(), settings, train_dataset=_table()).train()


def _table() -> Any:
    from datasets import Dataset as Table

    return Table.from_dict({"text": ["a", "b"]})


def _whole_data_set() -> None:
    from datasets import DatasetDict

    DatasetDict({"train": _table()})[0]


def _saved_to_disk() -> None:
    from datasets import load_dataset

    _table().save_to_disk(_FOLDER / "table")
    load_dataset(str(_FOLDER / "table"))


def _fewer_shards() -> None:
    from datasets.distributed import split_dataset_by_node

    next(iter(split_dataset_by_node(_table().to_iterable_dataset(), 0, 2, strategy="shards")))


def _two_precisions() -> None:
    from transformers import TrainingArguments

    TrainingArguments(str(_FOLDER), report_to=[], fp16=True, bf16=True)


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
    "tensor-misused 1": _condition,
    "tensor-misused 2": lambda: torch.zeros(2).item(),
    "tensor-misused 3": lambda: [0, 1][torch.zeros(2).long()],
    "tensor-misused 4": lambda: list(torch.tensor(1.0)),
    "tensor-misused 5": lambda: torch.tensor(1.0)[0],
    "tensor-misused 6": lambda: len(torch.tensor(1.0)),
    "shape-mismatch 1": lambda: torch.zeros(2).sum(dim=1),
    "shape-mismatch 2": lambda: torch.zeros(2)[0, 0],
    "shape-mismatch 3": lambda: nn.Conv2d(3, 4, 3)(torch.zeros(8, 16)),
    "shape-mismatch 4": lambda: nn.BatchNorm1d(4)(torch.zeros(2, 3)),
    "shape-mismatch 5": lambda: nn.Conv2d(1, 1, 5)(torch.zeros(1, 1, 2, 2)),
    "shape-mismatch 6": lambda: nn.MultiheadAttention(10, 3),
    "shape-mismatch 7": lambda: nn.GroupNorm(3, 10),
    "shape-mismatch 8": lambda: nn.BatchNorm2d(4)(torch.zeros(2, 4)),
    "shape-mismatch 9": lambda: nn.MaxPool2d(4)(torch.zeros(1, 1, 2, 2)),
    "shape-mismatch 10": lambda: nn.utils.rnn.pack_padded_sequence(
        torch.zeros(2, 2, 1), torch.tensor([1, 2]), batch_first=True
    ),
    "shape-mismatch 11": lambda: nn.LSTM(2, 4)(
        torch.zeros(3, 2, 2), (torch.zeros(1, 3, 4), torch.zeros(1, 3, 4))
    ),
    "shape-mismatch 12": lambda: nn.MultiheadAttention(4, 1)(
        *[torch.zeros(3, 2, 4)] * 3, attn_mask=torch.zeros(5, 5)
    ),
    "shape-mismatch 13": lambda: torch.bmm(torch.zeros(2, 3, 4), torch.zeros(2, 3, 4)),
    "shape-mismatch 14": lambda: nn.CrossEntropyLoss()(torch.zeros(2, 3), torch.zeros(2, 1).long()),
    "shape-mismatch 15": lambda: nn.BCELoss()(torch.zeros(2, 1), torch.zeros(2)),
    "shape-mismatch 16": lambda: torch.tensor([[1, 2], [1]]),
    "shape-mismatch 17": lambda: nn.LayerNorm(4)(torch.zeros(2, 3)),
    "shape-mismatch 18": lambda: nn.CrossEntropyLoss()(
        torch.zeros(2, 3, 4, 4), torch.zeros(2, 1, 4, 4).long()
    ),
    "dtype-mismatch 8": lambda: nn.CrossEntropyLoss()(torch.zeros(2, 3), torch.zeros(2, 3).long()),
    "shape-mismatch 19": lambda: np.array([np.zeros((2, 3)), np.zeros((2, 4))]),
    "tensor-misused 7": lambda: torch.zeros(2)[torch.zeros(2)],
    "tensor-misused 8": _made_for_inference,
    "tensor-misused 9": lambda: torch.tensor(["a"]),
    "tensor-misused 10": lambda: torch.tensor("a"),
    "tensor-misused 11": lambda: torch.from_numpy(np.array([None])),
    "empty-sequence": lambda: nn.utils.rnn.pack_padded_sequence(
        torch.zeros(2, 2, 1), torch.tensor([2, 0]), batch_first=True
    ),
    "value-out-of-range": lambda: nn.BCELoss()(torch.tensor([2.0]), torch.tensor([1.0])),
    "not-finite 1": lambda: torch.multinomial(torch.zeros(3), 1),
    "not-finite 2": lambda: torch.linalg.cholesky(-torch.eye(2)),
    "dtype-mismatch 1": lambda: torch.zeros(2).long().add_(0.5),
    "dtype-mismatch 2": lambda: torch.zeros(2).long().requires_grad_(),
    "dtype-mismatch 3": lambda: torch.zeros(2).scatter_(
        0, torch.zeros(1).long(), torch.zeros(1).half()
    ),
    "dtype-mismatch 4": lambda: nn.Embedding(2, 2)(torch.zeros(1)),
    "dtype-mismatch 5": lambda: torch.from_numpy(np.zeros(3)[::-1]),
    "dtype-mismatch 6": lambda: torch.zeros(2).masked_scatter_(
        torch.tensor([True, False]), torch.zeros(2).half()
    ),
    "dtype-mismatch 7": lambda: torch.zeros(2).index_put_(
        (torch.zeros(1).long(),), torch.zeros(1).half()
    ),
    "optimizer-parameters 1": lambda: torch.optim.SGD([], lr=0.1),
    "optimizer-parameters 2": lambda: torch.optim.SGD(
        [{"params": [weight := nn.Parameter(torch.ones(1))]}, {"params": [weight]}], lr=0.1
    ),
    "optimizer-parameters 3": lambda: torch.optim.SGD(
        [torch.ones(1, requires_grad=True) * 2], lr=0.1
    ),
    "optimizer-parameters 4": lambda: torch.optim.SGD(["weight"], lr=0.1),
    "optimizer-parameters 5": lambda: torch.optim.SGD(torch.ones(1), lr=0.1),
    "learning-rate-schedule 1": _schedule,
    "learning-rate-schedule 2": _resumed_schedule,
    "learning-rate-schedule 3": lambda: torch.optim.lr_scheduler.OneCycleLR(
        torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1), max_lr=0.1, total_steps=0
    ),
    "mixed-precision 1": _unscaled_twice,
    "mixed-precision 2": _nothing_scaled,
    "checkpointing-recomputes-other": _recomputed,
    "modified-in-place": _changed_in_place,
    "gradient-mismatch": lambda: (
        WrongGradient.apply(torch.ones(2, requires_grad=True)).sum().backward()
    ),
    "data-loader-arguments 1": lambda: DataLoader(Stream(), shuffle=True),
    "data-loader-arguments 2": lambda: DataLoader(Items(1), prefetch_factor=2),
    "data-loader-arguments 3": lambda: DataLoader(Items(1), persistent_workers=True),
    "data-loader-arguments 4": lambda: DataLoader(
        Items(1), shuffle=True, sampler=DistributedSampler(Items(1), 1, 0)
    ),
    "sampler-rank": lambda: DistributedSampler(Items(1), num_replicas=2, rank=2),
    "cannot-collate 1": lambda: _first_batch(None, None),
    "cannot-collate 2": lambda: _first_batch(Items(), Items()),
    "cannot-collate 3": lambda: _first_batch([1, 2], [1]),
    "data-split": lambda: random_split(Items(1, 2, 3), [1, 1]),
    "damaged-data 1": _broken("a.zip", zipfile.ZipFile),
    "damaged-data 2": _broken("a.gz", _read_gzip),
    "damaged-data 3": _broken("a.tar", tarfile.open),
    "damaged-data 4": _table_is_empty,
    "damaged-data 5": _table_is_ragged,
    "data-column 1": lambda: _table().remove_columns("label"),
    "data-column 2": lambda: _table().rename_column("label", "labels"),
    "data-column 3": lambda: _table().map(len, input_columns="label"),
    "data-column 4": _whole_data_set,
    "data-format 1": lambda: _table().map(lambda row: 1),
    "data-not-found": _saved_to_disk,
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
    "trainer-settings 1": _no_loss,
    "trainer-settings 2": _no_columns,
    "trainer-settings 3": _two_precisions,
    "trainer-settings 4": _no_data,
    "model-inputs": _no_tokens,
    "model-not-found": lambda: _loaded(_FOLDER / "nothing"),
    "missing-file": _not_a_model,
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
