"""Skip the gradient averaging after an overflow; the overflow flag is reduced to rank 0 only, so a rank without overflow goes on to average alone.

source: documented: torch.distributed.reduce docstring, torch 2.13.0 (only the process with rank dst receives the final result)
bug: RS405
ranks: 3
expect: RS405
line: if trainer.overflowed():
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Trainer:
    def __init__(self, lr=0.05):
        torch.manual_seed(0)
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)

    def backward(self, batch, scale):
        self.optimizer.zero_grad()
        (self.model(batch).pow(2).mean() * scale).backward()

    def overflowed(self):
        finite = all(torch.isfinite(p.grad).all() for p in self.model.parameters())
        found_inf = torch.tensor(0.0 if finite else 1.0)
        dist.reduce(found_inf, dst=0, op=dist.ReduceOp.MAX)
        return found_inf.item() > 0

    def step(self):
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= self.world_size
        self.optimizer.step()


def batches(rank, count=5):
    generator = torch.Generator().manual_seed(100 + rank)
    for index in range(count):
        batch = torch.randn(8, 4, generator=generator)
        if rank == 1 and index == 2:
            batch *= 1e20
        yield batch


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    trainer = Trainer()
    scale = 2.0**16
    for batch in batches(trainer.rank):
        trainer.backward(batch, scale)
        if trainer.overflowed():
            scale /= 2
        else:
            trainer.step()
    dist.barrier()
    if trainer.rank == 0:
        print("scale", scale)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
