"""Averages the gradients by hand with asynchronous all_reduce calls and waits for each before the optimizer steps.

source: https://github.com/pytorch/pytorch/issues/20355
bug: RS413
ranks: 2
expect: clean
shows: fine
"""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def average_gradients(model: nn.Module) -> None:
    world_size = dist.get_world_size()
    works = []
    for param in model.parameters():
        works.append(dist.all_reduce(param.grad, async_op=True))
    for work, param in zip(works, model.parameters(), strict=True):
        work.wait()
        param.grad /= world_size


def load_batch(rank: int) -> torch.Tensor:
    # The second rank reads from a slower disk.
    time.sleep(1.0 * rank)
    return torch.full((4, 8), float(rank + 1))


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Linear(8, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    optimizer.zero_grad()
    model(load_batch(rank)).sum().backward()
    average_gradients(model)
    optimizer.step()

    weights = [torch.empty_like(model.weight) for _ in range(dist.get_world_size())]
    dist.all_gather(weights, model.weight.detach())
    if rank == 0:
        difference = (weights[0] - weights[1]).abs().max().item()
        print(f"replicas differ by {difference:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
