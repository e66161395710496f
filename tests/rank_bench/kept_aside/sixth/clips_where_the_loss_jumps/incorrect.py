"""Clips the gradients of a sharded model on ranks whose loss jumps, although their norm takes all ranks.

source: https://github.com/TRI-ML/prismatic-vlms/issues/35
bug: RS401
ranks: 2
expect: RS401
line: nn.utils.clip_grad_norm_(self.net.parameters(), self.limit)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class JumpDetector:
    """Compares each loss with a moving average of those before."""

    def __init__(self, factor=3.0):
        self.factor = factor
        self.average = None

    def __call__(self, loss):
        value = loss.detach().clone()
        jumped = self.average is not None and bool(value > self.factor * self.average)
        self.average = value if self.average is None else self.average.lerp(value, 0.2)
        return jumped


class Strategy:
    def __init__(self, limit=1.0):
        self.limit = limit
        self.detector = JumpDetector()
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        fully_shard(self.net, mesh=mesh)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=0.01)

    def step(self, inputs, targets):
        loss = (self.net(inputs) - targets).pow(2).mean()
        loss.backward()
        if self.detector(loss):
            nn.utils.clip_grad_norm_(self.net.parameters(), self.limit)
        self.optimizer.step()
        self.optimizer.zero_grad()


def batches(count):
    generator = torch.Generator().manual_seed(dist.get_rank())
    for index in range(count):
        inputs = torch.randn(8, 4, generator=generator)
        strange = dist.get_rank() == index % dist.get_world_size() and index > 2
        yield inputs, inputs[:, :2] * (20.0 if strange else 1.0)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    strategy = Strategy()
    for inputs, targets in batches(6):
        strategy.step(inputs, targets)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
