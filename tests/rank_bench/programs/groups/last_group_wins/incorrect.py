"""Builds one data-parallel group per tensor-parallel rank and keeps the last one on every rank, a member or not.

source: https://github.com/gazingstars123/Anima-Standalone-Trainer/pull/39
bug: RS411
ranks: 4
expect: RS411
line: dist.all_reduce(param.grad, group=dp_group)
decidable: yes
shows: silent replica drift [1-9]
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

TP_SIZE = 2


def build_dp_group(rank: int, world_size: int) -> dist.ProcessGroup | None:
    """The ranks that hold the same tensor-parallel slice as this one."""
    dp_group = None
    for tp_rank in range(TP_SIZE):
        ranks = list(range(tp_rank, world_size, TP_SIZE))
        group = dist.new_group(ranks)
        dp_group = group
    return dp_group


def reduce_gradients(model: nn.Module, dp_group: dist.ProcessGroup | None, dp_size: int) -> None:
    for param in model.parameters():
        dist.all_reduce(param.grad, group=dp_group)
        param.grad /= dp_size


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank, world_size = dist.get_rank(), dist.get_world_size()
    dp_group = build_dp_group(rank, world_size)
    torch.manual_seed(rank % TP_SIZE)
    model = nn.Linear(4, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        batch = torch.full((2, 4), float(rank + step))
        optimizer.zero_grad()
        model(batch).sum().backward()
        reduce_gradients(model, dp_group, world_size // TP_SIZE)
        optimizer.step()

    weights = [torch.empty_like(model.weight) for _ in range(world_size)]
    dist.all_gather(weights, model.weight.detach())
    # Ranks 0 and 2 hold the same slice.
    drift = (weights[0] - weights[2]).abs().max().item()
    if rank == 0:
        print(f"replica drift {10 * drift:.0f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
