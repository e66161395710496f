"""Both ranks average the loss, and rank 0 alone prints it.

runs-on: cpu-ranks
ranks: 2
expect: output ^step 1: [0-9]
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def report(loss: torch.Tensor, step: int) -> None:
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    if dist.get_rank() == 0:
        print(f"step {step}: {mean.item() / dist.get_world_size():.3f}")


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(dist.get_rank())
    model = nn.Linear(8, 1)
    for step in range(2):
        report(model(torch.randn(4, 8)).square().mean(), step)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
