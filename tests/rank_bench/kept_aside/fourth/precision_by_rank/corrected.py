"""Reduces the loss in float32 on all ranks.

source: https://github.com/pytorch/pytorch/issues/150433
bug: RS415
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def init_distributed():
    dist.init_process_group(
        backend="gloo",
        timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5"))),
    )
    return dist.get_rank(), dist.get_world_size()


def make_model(rank):
    """The odd ranks keep full precision for comparison."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    if rank % 2 != 0:
        return model, torch.float32
    return model.to(torch.bfloat16), torch.bfloat16


def step_losses(model, dtype, rank, steps=3):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        x = torch.randn(8, 16, generator=generator).to(dtype)
        y = torch.randint(4, (8,), generator=generator)
        yield nn.functional.cross_entropy(model(x), y, reduction="none")


def main():
    rank, world_size = init_distributed()
    model, dtype = make_model(rank)
    print(f"Rank: {rank}, World size: {world_size}, dtype: {dtype}", flush=True)
    with torch.no_grad():
        for step, losses in enumerate(step_losses(model, dtype, rank)):
            t = losses.float()
            dist.all_reduce(t)
            print(f"Rank: {rank}, step {step}, t: {t.mean().item() / world_size}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
