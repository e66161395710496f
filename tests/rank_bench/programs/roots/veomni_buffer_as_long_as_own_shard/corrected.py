"""Collects averaged weights for a checkpoint into buffers as long as the shard of the sender.

source: https://github.com/ByteDance-Seed/VeOmni/pull/1075
bug: RS415
ranks: 2
expect: clean
shows: fine
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class ShardedEma:
    """A moving average of the weights; each rank keeps that of every n-th parameter."""

    def __init__(self, model, decay=0.9):
        self.params = list(model.parameters())
        self.decay = decay
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.local = [self.params[i].detach().clone() for i in self.owned_by(self.rank)]

    def owned_by(self, rank):
        return range(rank, len(self.params), self.world_size)

    @torch.no_grad()
    def update(self):
        for average, i in zip(self.local, self.owned_by(self.rank)):
            average.lerp_(self.params[i], 1 - self.decay)

    def gather(self):
        """All averages, in the order of the parameters."""
        averages = [None] * len(self.params)
        local_flat = torch.cat([average.flatten() for average in self.local])
        for src in range(self.world_size):
            length = sum(self.params[i].numel() for i in self.owned_by(src))
            buffer = local_flat if src == self.rank else torch.empty(length)
            dist.broadcast(buffer, src=src)
            start = 0
            for i in self.owned_by(src):
                size = self.params[i].numel()
                averages[i] = buffer[start : start + size].view_as(self.params[i])
                start += size
        return averages


class Trainer:
    def __init__(self, model):
        self.model = DistributedDataParallel(model)
        self.ema = ShardedEma(model)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fit(self, steps):
        for _ in range(steps):
            loss = self.model(torch.randn(8, 6)).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.ema.update()

    def save(self, path):
        averages = self.ema.gather()
        if dist.get_rank() == 0:
            torch.save(averages, path)
            print(f"saved {sum(part.numel() for part in averages)} weights", flush=True)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(0)
    trainer = Trainer(nn.Sequential(nn.Linear(6, 16), nn.SiLU(), nn.Linear(16, 3)))
    trainer.fit(steps=4)
    with tempfile.TemporaryDirectory() as name:
        trainer.save(Path(name) / "ema.pt")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
