"""Broadcasts parameters in data-parallel groups from the first rank of each group.

source: https://github.com/laekov/fastmoe/issues/119
bug: RS415
ranks: 4
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class DistributedGroupedDataParallel(nn.Module):
    """Keeps the parameters of a module the same in its data-parallel group."""

    def __init__(self, module, mp_group, dp_group):
        super().__init__()
        self.module = module
        self.comms = {"mp": mp_group, "dp": dp_group}
        self._sync_params()

    def _sync_params(self):
        for p in self.module.parameters():
            comm = getattr(p, "dp_comm", "dp")
            with torch.no_grad():
                group = self.comms[comm]
                dist.broadcast(p, dist.get_global_rank(group, 0), group=group)

    def allreduce_params(self):
        for p in self.module.parameters():
            if p.grad is not None:
                dist.all_reduce(p.grad, group=self.comms["dp"])

    def forward(self, x):
        return self.module(x)


def make_groups(rank, world_size, mp_size=2):
    for start in range(0, world_size, mp_size):
        ranks = list(range(start, start + mp_size))
        group = dist.new_group(ranks)
        if rank in ranks:
            mp_group = group
    for offset in range(mp_size):
        ranks = list(range(offset, world_size, mp_size))
        group = dist.new_group(ranks)
        if rank in ranks:
            dp_group = group
    return mp_group, dp_group


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    mp_group, dp_group = make_groups(dist.get_rank(), dist.get_world_size())
    model = DistributedGroupedDataParallel(nn.Linear(4, 4), mp_group, dp_group)
    model(torch.randn(2, 4)).sum().backward()
    model.allreduce_params()
    print(dist.get_rank(), model.module.bias[0].item())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
