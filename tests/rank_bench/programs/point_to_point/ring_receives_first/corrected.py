"""Passes key blocks around a ring; the even ranks send first and the odd ranks receive first.

source: https://github.com/NVIDIA/nccl/issues/479
bug: RS416
ranks: 4
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


def pass_on(block: torch.Tensor, rank: int, world_size: int) -> torch.Tensor:
    """Gives the block to the right neighbour and returns the left neighbour's."""
    incoming = torch.empty_like(block)
    if rank % 2 == 0:
        dist.send(block, dst=(rank + 1) % world_size)
        dist.recv(incoming, src=(rank - 1) % world_size)
    else:
        dist.recv(incoming, src=(rank - 1) % world_size)
        dist.send(block, dst=(rank + 1) % world_size)
    return incoming


def ring_attention(query: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """The scores of this rank's query against the key blocks of all ranks."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    scores = []
    block = keys
    for step in range(world_size):
        scores.append(query @ block.T)
        if step < world_size - 1:
            block = pass_on(block, rank, world_size)
    return torch.cat(scores, dim=1)


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(dist.get_rank())
    scores = ring_attention(torch.randn(2, 8), torch.randn(4, 8))
    print(f"rank {dist.get_rank()}: scores of {tuple(scores.shape)}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
