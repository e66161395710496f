"""Dump a batch that cannot be decoded under a name that rank 0 broadcasts; only the rank that has such a batch comes to the broadcast.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/6430
bug: RS410
ranks: 2
expect: RS410
line: dist.broadcast_object_list(name, src=0)
decidable: yes
shows: hang
"""

import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def decode(records):
    if any(not record.isascii() for record in records):
        raise ValueError("record is not ASCII text")
    return torch.tensor([[len(record), record.count("a")] for record in records]).float()


def read_records(rank, world_size):
    records = ["alpha", "beta", "gamma", "delta", "banana", "carat", "kappa", "lambda"] * 2
    records[11] = "café"
    return [records[start : start + 2] for start in range(0, len(records), 2)][rank::world_size]


class Trainer:
    def __init__(self, folder):
        self.rank = dist.get_rank()
        self.folder = folder
        self.model = DDP(nn.Linear(2, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def fit(self, batches):
        last = torch.zeros(2, 2)
        for step, records in enumerate(batches):
            try:
                inputs = decode(records)
            except ValueError as error:
                name = [f"bad_batch_{time.time_ns()}.pt"]
                dist.broadcast_object_list(name, src=0)
                torch.save(records, os.path.join(self.folder, name[0]))
                print(f"step {step}: {error}, saved as {name[0]}")
                inputs = last
            self.optimizer.zero_grad()
            self.model(inputs).pow(2).mean().backward()
            self.optimizer.step()
            last = inputs


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    with tempfile.TemporaryDirectory() as folder:
        Trainer(folder).fit(read_records(dist.get_rank(), dist.get_world_size()))
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
