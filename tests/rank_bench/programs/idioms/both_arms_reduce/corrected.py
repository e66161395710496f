"""A rank whose batch has no valid target takes another branch, but both branches perform the same all_reduce.

source: https://github.com/NVIDIA-NeMo/Automodel/pull/2468
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

IGNORE = -100


def loss_of_all_ranks(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean loss over the valid targets of all ranks; some ranks may have none."""
    valid = targets != IGNORE
    if valid.any():
        loss = nn.functional.cross_entropy(logits[valid], targets[valid], reduction="sum")
        sums = torch.stack([loss.detach(), valid.sum().float()])
        dist.all_reduce(sums)
    else:
        sums = torch.zeros(2)
        dist.all_reduce(sums)
    return sums[0] / sums[1].clamp(min=1)


def make_targets(rank: int, step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(100 * rank + step)
    targets = torch.randint(0, 5, (6,), generator=generator)
    if (rank + step) % 2 == 1:
        targets[:] = IGNORE
    return targets


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = dist.get_rank()
    model = nn.Linear(8, 5)
    for step in range(4):
        loss = loss_of_all_ranks(model(torch.randn(6, 8)), make_targets(rank, step))
        if rank == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
