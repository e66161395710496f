"""Rank 0 chooses the number of warm-up steps and sends it; every rank cuts its slice to the shortest before it loops.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/17733
bug: RS406
ranks: 2
expect: clean
shows: fine
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=13)
    return parser.parse_args()


def warmup_steps(rank: int) -> int:
    """How many steps fit into the budget, as measured by rank 0."""
    steps = torch.zeros(1, dtype=torch.long)
    if rank == 0:
        steps.fill_(3)
    dist.broadcast(steps, src=0)
    return int(steps)


def own_samples(samples: torch.Tensor, rank: int, world_size: int) -> torch.Tensor:
    """Every world_size-th sample; without the rest, so that all ranks have as many."""
    own = samples[rank::world_size]
    return own[: len(samples) // world_size]


def main() -> None:
    args = parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(nn.Linear(4, 1))
    samples = torch.randn(args.samples, 4, generator=torch.Generator().manual_seed(0))
    for _ in range(warmup_steps(rank)):
        model(torch.zeros(1, 4)).sum().backward()
    count = 0
    for sample in own_samples(samples, rank, world_size):
        model(sample[None]).pow(2).sum().backward()
        count += 1
    print(f"rank {rank}: {count} samples", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
