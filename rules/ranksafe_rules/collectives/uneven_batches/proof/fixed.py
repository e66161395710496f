"""DistributedSampler pads seven samples to eight: four steps for each rank.

runs-on: cpu-ranks
ranks: 2
expect: output ^rank 0 trained 4 steps$
expect: output ^rank 1 trained 4 steps$
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def average_gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset = TensorDataset(torch.randn(7, 8))
    sampler = DistributedSampler(dataset)
    steps = 0
    for (x,) in DataLoader(dataset, batch_size=1, sampler=sampler):
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
