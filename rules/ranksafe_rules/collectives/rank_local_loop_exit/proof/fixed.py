"""The ranks stop together, when the mean of their losses is small enough.

runs-on: cpu-ranks
ranks: 2
expect: output ^rank 0 stops after 4 steps$
expect: output ^rank 1 stops after 4 steps$
"""

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
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if mean.item() / dist.get_world_size() < GOAL:
            break
        loss.backward()
        average_gradients(model)
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    return steps


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
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
