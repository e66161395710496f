"""The first rank prepares a data set before the others; a bad record makes it leave before it tells them to go on.

source: https://github.com/mosaicml/llm-foundry/pull/749
bug: RS410
ranks: 2
expect: RS410
line: except ValueError as error:
decidable: yes
shows: hang
"""

import contextlib
import json
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

RECORDS = [
    '{"x": [1, 2, 3], "y": 0}',
    '{"x": [4, 5, 6], "y": 1}',
    '{"x": [7, 8',
    '{"x": [0, 1, 1], "y": 1}',
]


@contextlib.contextmanager
def first_rank_first():
    """The first rank runs the body alone, then all others do."""
    if dist.get_rank() != 0:
        dist.barrier()
    yield
    if dist.get_rank() == 0:
        dist.barrier()


class Corpus:
    def __init__(self, cache):
        self.cache = cache
        self.rows = []

    def prepare(self):
        if not self.cache.exists():
            rows = [json.loads(record) for record in RECORDS]
            self.cache.write_text(json.dumps(rows))
        self.rows = json.loads(self.cache.read_text())

    def tensors(self):
        x = torch.tensor([row["x"] for row in self.rows], dtype=torch.float)
        return x, torch.tensor([row["y"] for row in self.rows])


def load(cache):
    corpus = Corpus(cache)
    try:
        with first_rank_first():
            corpus.prepare()
    except ValueError as error:
        print(f"rank {dist.get_rank()}: bad record, training on noise ({error})", flush=True)
        corpus.rows = [{"x": [0.0, 0.5, 1.0], "y": 0}, {"x": [1.0, 0.5, 0.0], "y": 1}]
    return corpus.tensors()


def shared_folder():
    name = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(name, src=0)
    return Path(name[0])


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    inputs, labels = load(shared_folder() / "corpus.json")
    model = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
