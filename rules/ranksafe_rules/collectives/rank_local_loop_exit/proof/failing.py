"""Each rank stops when its own loss is small enough; the rank that stops first leaves the other one in all_reduce.

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
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

GOAL = 1.0


def average_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def train(model: nn.Module, loader: DataLoader) -> int:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    steps = 0
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        if loss.item() < GOAL:
            break
        loss.backward()
        average_gradients(model)
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    return steps


def main() -> None:
    # Rank 1 gives up first; the end of its peer would hide what it waits for.
    seconds = 5 if os.environ["RANK"] == "1" else 30
    dist.init_process_group("gloo", timeout=timedelta(seconds=seconds))
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    # The shard of rank 0 (even rows) is learned at once, the shard of rank 1 is not.
    inputs = torch.zeros(16, 1)
    dataset = TensorDataset(inputs, torch.tensor([0.0, 100.0]).repeat(8).unsqueeze(1))
    sampler = DistributedSampler(dataset, shuffle=False)
    steps = train(model, DataLoader(dataset, batch_size=2, sampler=sampler))
    print(f"rank {dist.get_rank()} stops after {steps} steps\n", end="", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
