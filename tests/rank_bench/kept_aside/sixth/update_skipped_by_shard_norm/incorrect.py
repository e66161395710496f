"""An optimizer of gradient shards skips an update by the norm of its own shard, before it gathers the parameters.

source: https://github.com/pytorch/torchtitan/issues/766
bug: RS401
ranks: 2
expect: RS401
line: dist.all_gather(gathered, shard)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class ShardedSGD:
    """Each rank averages and updates its part of the flat parameters, then all gather them."""

    def __init__(self, module, lr, max_norm):
        self.module = module
        self.lr = lr
        self.max_norm = max_norm
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.skipped = 0

    def _flat_gradient(self):
        flat = torch.cat([p.grad.reshape(-1) for p in self.module.parameters()])
        dist.all_reduce(flat)
        return flat / self.world

    def _padded(self, flat):
        return nn.functional.pad(flat, (0, -len(flat) % self.world))

    @torch.no_grad()
    def step(self):
        gradient = self._padded(self._flat_gradient()).chunk(self.world)[self.rank]
        norm = gradient.norm()
        if norm > self.max_norm:
            self.skipped += 1
            return norm
        flat = parameters_to_vector(self.module.parameters())
        shard = self._padded(flat).chunk(self.world)[self.rank] - self.lr * gradient
        gathered = [torch.empty_like(shard) for _ in range(self.world)]
        dist.all_gather(gathered, shard)
        vector_to_parameters(torch.cat(gathered)[: len(flat)], self.module.parameters())
        return norm


def batches(count):
    generator = torch.Generator().manual_seed(dist.get_rank())
    for index in range(count):
        inputs = torch.randn(8, 6, generator=generator)
        yield inputs, (10.0 if index == 2 else 1.0) * inputs.sum(dim=1, keepdim=True)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = ShardedSGD(net, lr=0.01, max_norm=30.0)
    for inputs, targets in batches(6):
        net.zero_grad()
        (net(inputs) - targets).pow(2).mean().backward()
        norm = optimizer.step()
        print(f"rank {dist.get_rank()}: gradient norm {norm:.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
