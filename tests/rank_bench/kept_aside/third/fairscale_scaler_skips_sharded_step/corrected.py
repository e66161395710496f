"""A gradient scaler agrees with the other ranks on infinities before it calls a sharded optimizer.

source: https://github.com/facebookresearch/fairscale/issues/754
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class ShardedOptimizer:
    """Every parameter is updated by one rank, which then sends it to the others."""

    def __init__(self, params, lr):
        self.params = list(params)
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.mine = self.params[self.rank :: self.world_size]
        self.local = torch.optim.SGD(self.mine, lr=lr)

    def reduce_grads(self):
        for index, param in enumerate(self.params):
            dist.reduce(param.grad, dst=index % self.world_size)

    def step(self):
        self.local.step()
        for index, param in enumerate(self.params):
            dist.broadcast(param.data, src=index % self.world_size)

    def zero_grad(self):
        for param in self.params:
            param.grad = None


class GradScaler:
    def __init__(self, init_scale=2.0**14):
        self.scale = init_scale

    def step(self, optimizer):
        grads = [param.grad for param in optimizer.mine]
        found_inf = any(not torch.isfinite(grad).all() for grad in grads)
        inf_anywhere = torch.tensor([float(found_inf)])
        dist.all_reduce(inf_anywhere)
        if inf_anywhere.item():
            self.scale *= 0.5
            return
        for grad in grads:
            grad /= self.scale * dist.get_world_size()
        optimizer.step()


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    model = nn.Linear(4, 2).half()
    optimizer = ShardedOptimizer(model.parameters(), lr=0.05)
    scaler = GradScaler()
    for step in range(4):
        x = torch.full((8, 4), 2.0 + dist.get_rank(), dtype=torch.half)
        loss = (model(x).float() - 1).pow(2).mean()
        (loss * scaler.scale).backward()
        optimizer.reduce_grads()
        scaler.step(optimizer)
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item():.3f}, scale {scaler.scale:.0f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
