"""A trainer creates the group of its logging ranks on those ranks only, so the other ranks never enter new_group.

source: https://github.com/pytorch/pytorch/issues/25390
bug: RS412
ranks: 4
expect: RS412
line: self.log_group = dist.new_group(self.log_ranks, timeout=TIMEOUT)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

TIMEOUT = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))


class Trainer:
    """Trains on all ranks; the first rank of each node of two takes part in the logging."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.log_ranks = list(range(0, dist.get_world_size(), 2))
        self.log_group = None
        if self.rank in self.log_ranks:
            self.log_group = dist.new_group(self.log_ranks, timeout=TIMEOUT)
        self.checkpoint_group = dist.new_group(timeout=TIMEOUT)
        self.model = nn.Linear(8, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def step(self) -> torch.Tensor:
        loss = self.model(torch.randn(4, 8)).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        for param in self.model.parameters():
            dist.all_reduce(param.grad)
        self.optimizer.step()
        return loss.detach()

    def log(self, loss: torch.Tensor) -> None:
        if self.rank not in self.log_ranks:
            return
        dist.all_reduce(loss, group=self.log_group)
        print(f"rank {self.rank}: loss {loss / len(self.log_ranks):.3f}", flush=True)

    def finish(self) -> None:
        dist.barrier(group=self.checkpoint_group)


def main() -> None:
    dist.init_process_group("gloo", timeout=TIMEOUT)
    trainer = Trainer()
    for _ in range(2):
        trainer.log(trainer.step())
    trainer.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
