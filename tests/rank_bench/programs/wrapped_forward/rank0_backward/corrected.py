"""Trains with DDP and backpropagates the loss of replayed samples on every rank, with a weight of zero or one.

source: documented: DistributedDataParallel, docstring, torch 2.13 (forward and backward synchronise)
bug: RS403
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class ReplayBuffer:
    """The hardest samples so far; lives on the first rank."""

    def __init__(self, capacity: int) -> None:
        self.samples = torch.zeros(capacity, 16)

    def push(self, batch: torch.Tensor) -> None:
        self.samples = torch.cat([batch, self.samples])[: len(self.samples)]


def reconstruction(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    return (model(batch) - batch).pow(2).mean()


def train(rank: int, steps: int = 4) -> float:
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 4), nn.Linear(4, 16)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    replay = ReplayBuffer(capacity=8)
    loss = torch.zeros(())
    for _ in range(steps):
        batch = torch.randn(8, 16)
        optimizer.zero_grad()
        loss = reconstruction(model, batch)
        loss.backward()
        if rank == 0:
            replay.push(batch[:2])
        weight = 1.0 if rank == 0 else 0.0  # the others have nothing to replay
        replay_loss = weight * reconstruction(model, replay.samples)
        replay_loss.backward()
        optimizer.step()
    return loss.item()


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    loss = train(rank)
    total = torch.tensor([loss])
    dist.all_reduce(total)
    if rank == 0:
        print(f"loss {total.item() / dist.get_world_size():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
