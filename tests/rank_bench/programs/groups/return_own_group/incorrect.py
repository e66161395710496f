"""Walks through the node groups and returns as soon as it has made its own, so the first node misses the second group.

source: https://github.com/pytorch/pytorch/issues/130102
bug: RS412
ranks: 4
expect: RS412
line: group = dist.new_group(ranks, timeout=TIMEOUT)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

RANKS_PER_NODE = 2
TIMEOUT = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))


def node_group(rank: int, world_size: int) -> dist.ProcessGroup:
    """The group of the ranks on this rank's node."""
    for first in range(0, world_size, RANKS_PER_NODE):
        ranks = list(range(first, first + RANKS_PER_NODE))
        group = dist.new_group(ranks, timeout=TIMEOUT)
        if rank in ranks:
            return group
    raise ValueError(f"rank {rank} is on no node")


def hierarchical_mean(
    value: torch.Tensor, node: dist.ProcessGroup, leaders: dist.ProcessGroup | None
) -> torch.Tensor:
    """The mean over each node, then over the leaders of the nodes, then back to the node."""
    dist.all_reduce(value, group=node)
    if dist.get_rank(node) == 0:
        dist.all_reduce(value, group=leaders)
    dist.broadcast(value, group_src=0, group=node)
    return value / dist.get_world_size()


def main() -> None:
    dist.init_process_group("gloo", timeout=TIMEOUT)
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    node = node_group(rank, world_size)
    leaders = dist.new_group(list(range(0, world_size, RANKS_PER_NODE)), timeout=TIMEOUT)
    mean = hierarchical_mean(torch.tensor([float(rank)]), node, leaders)
    print(f"rank {rank}: mean {mean.item():.2f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
