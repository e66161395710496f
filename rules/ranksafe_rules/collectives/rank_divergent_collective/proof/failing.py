"""Rank 0 averages the loss for its log line inside its own branch and waits for a rank that is at the barrier.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: Timed out waiting 5000ms for
frame: dist.all_reduce(mean)
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def report(loss: torch.Tensor, step: int) -> None:
    if dist.get_rank() == 0:
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        print(f"step {step}: {mean.item() / dist.get_world_size():.3f}")


def main() -> None:
    # Rank 0 gives up first; the end of its peer would hide what it waits for.
    seconds = 5 if os.environ["RANK"] == "0" else 30
    dist.init_process_group("gloo", timeout=timedelta(seconds=seconds))
    torch.manual_seed(dist.get_rank())
    model = nn.Linear(8, 1)
    for step in range(2):
        report(model(torch.randn(4, 8)).square().mean(), step)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
