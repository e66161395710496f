"""A checkpoint is written where the rank is 0, and the optimizer's shards are collected there as well.

source: https://github.com/pytorch/pytorch/pull/60285
bug: RS402
ranks: 2
expect: RS402
line: self.optimizer.consolidate_state_dict(to=0)
decidable: yes
shows: hang
"""

import io
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


class Experiment:
    def __init__(self, model):
        self.rank = dist.get_rank()
        self.model = DDP(model)
        self.optimizer = ZeroRedundancyOptimizer(
            self.model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-2
        )
        self.step = 0

    def train_step(self, batch):
        loss = (self.model(batch) - batch).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1

    def state_dict(self):
        # without this the optimizer knows only the state of its own shard
        self.optimizer.consolidate_state_dict(to=0)
        return {
            "step": self.step,
            "model": self.model.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def save(self):
        if self.rank == 0:
            buffer = io.BytesIO()
            torch.save(self.state_dict(), buffer)
            print(f"step {self.step}: checkpoint of {buffer.tell()} bytes", flush=True)


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(dist.get_rank())
    experiment = Experiment(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 8)))
    for _ in range(6):
        experiment.train_step(torch.randn(4, 8))
        if experiment.step % 3 == 0:
            experiment.save()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
