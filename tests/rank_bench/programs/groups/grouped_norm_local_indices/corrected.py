"""A normalisation inside tensor-parallel groups makes its subgroups of global ranks.

source: https://github.com/vllm-project/vllm/pull/41509
bug: RS411
ranks: 4
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

TENSOR_PARALLEL = 2


def tensor_parallel_groups():
    """The ranks of each group, in order, and the group of this rank."""
    world = dist.get_world_size()
    members = [
        list(range(start, start + TENSOR_PARALLEL)) for start in range(0, world, TENSOR_PARALLEL)
    ]
    groups = [dist.new_group(ranks) for ranks in members]
    own = dist.get_rank() // TENSOR_PARALLEL
    return members[own], groups[own]


class GroupedNorm(nn.Module):
    """Root mean square over the features that a few neighbours of a tensor-parallel group hold."""

    def __init__(self, features, tp_ranks, neighbours):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.neighbours = neighbours
        self.group = None
        position = tp_ranks.index(dist.get_rank())
        offset = dist.get_rank() - position
        for first in range(0, dist.get_world_size(), neighbours):
            ranks = list(range(first, first + neighbours))
            group = dist.new_group(ranks, use_local_synchronization=False)
            if first <= offset + position < first + neighbours:
                self.group = group

    def forward(self, hidden):
        squares = hidden.detach().pow(2).sum(dim=-1, keepdim=True)
        dist.all_reduce(squares, group=self.group)
        return self.weight * hidden / (squares / (self.neighbours * hidden.shape[-1])).sqrt()


class Block(nn.Module):
    def __init__(self, tp_ranks, tp_group):
        super().__init__()
        self.tp_group = tp_group
        self.up = nn.Linear(6, 4)
        self.norm = GroupedNorm(4, tp_ranks, neighbours=2)
        self.down = nn.Linear(4, 6, bias=False)

    def forward(self, inputs):
        output = self.down(self.norm(self.up(inputs)))
        summed = output.detach().clone()
        dist.all_reduce(summed, group=self.tp_group)
        return output + (summed - output.detach())


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(dist.get_rank())
    tp_ranks, tp_group = tensor_parallel_groups()
    block = Block(tp_ranks, tp_group)
    optimizer = torch.optim.SGD(block.parameters(), lr=0.01)
    data = torch.Generator().manual_seed(tp_ranks[0])
    for _ in range(3):
        inputs = torch.randn(8, 6, generator=data)
        loss = (block(inputs) - inputs).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
