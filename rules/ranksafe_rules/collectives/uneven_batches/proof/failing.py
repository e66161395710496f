"""Seven samples taken by rank are four for rank 0 and three for rank 1: the fourth all_reduce has no partner.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: Timed out waiting 5000ms for
frame: dist.all_reduce(parameter.grad)
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def average_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def shard(dataset: TensorDataset) -> Subset:
    return Subset(dataset, range(dist.get_rank(), len(dataset), dist.get_world_size()))


def main() -> None:
    # Rank 0 gives up first; the end of its peer would hide what it waits for.
    seconds = 5 if os.environ["RANK"] == "0" else 30
    dist.init_process_group("gloo", timeout=timedelta(seconds=seconds))
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset = TensorDataset(torch.randn(7, 8))
    steps = 0
    for (x,) in DataLoader(shard(dataset), batch_size=1):
        loss = model(x).square().mean()
        loss.backward()
        average_gradients(model)
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    print(f"rank {dist.get_rank()} trained {steps} steps\n", end="", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
