"""The first rank logs the time of an epoch, and the logger averages over all ranks what it is given.

source: https://github.com/choderalab/modelforge/pull/313
bug: RS401
ranks: 2
expect: RS401
line: self.log("epoch_time", time.time() - self.epoch_start_time)
decidable: yes
shows: error Received data size doesn't match expected size|Connection (closed|reset) by peer|Timed out waiting
"""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class TrainingAdapter(nn.Module):
    def __init__(self, potential):
        super().__init__()
        self.potential = potential
        self.global_rank = dist.get_rank()
        self.metrics = {}

    def log(self, name, value, rank_zero_only=False):
        """Remember a metric; unless only the first rank has it, the mean of all ranks."""
        value = torch.as_tensor(float(value))
        if not rank_zero_only:
            dist.all_reduce(value)
            value /= dist.get_world_size()
        self.metrics[name] = value.item()

    def on_train_epoch_start(self):
        self.epoch_start_time = time.time()

    def training_step(self, positions, energies):
        loss = (self.potential(positions) - energies).pow(2).mean()
        self.log("train/loss", loss.detach())
        return loss

    def on_train_epoch_end(self):
        if self.global_rank == 0:
            self.log("epoch_time", time.time() - self.epoch_start_time)


def train(adapter, positions, energies, epochs=2):
    optimizer = torch.optim.Adam(adapter.parameters(), lr=1e-3)
    for epoch in range(epochs):
        adapter.on_train_epoch_start()
        for x, y in zip(positions.chunk(3), energies.chunk(3), strict=True):
            loss = adapter.training_step(x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        adapter.on_train_epoch_end()
        if adapter.global_rank == 0:
            print(f"epoch {epoch}: {adapter.metrics}", flush=True)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(dist.get_rank())
    adapter = TrainingAdapter(DDP(nn.Sequential(nn.Linear(9, 16), nn.SiLU(), nn.Linear(16, 1))))
    train(adapter, torch.randn(18, 9), torch.randn(18, 1))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
