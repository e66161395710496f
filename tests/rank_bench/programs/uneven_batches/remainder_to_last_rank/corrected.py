"""Let DistributedSampler split the dataset; it pads, so that all ranks have the same number of batches.

source: https://github.com/pytorch/pytorch/issues/33148
bug: RS406
ranks: 3
expect: clean
decidable: yes
shows: fine
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def build_dataset(size):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(size, 10, generator=generator)
    return TensorDataset(inputs, inputs.mean(dim=1, keepdim=True))


def build_loader(dataset, args):
    sampler = DistributedSampler(dataset, args.world_size, args.rank, shuffle=False)
    return DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)


def train(args):
    model = DistributedDataParallel(nn.Linear(10, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.MSELoss()
    loader = build_loader(build_dataset(args.samples), args)
    for epoch in range(args.epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
        dist.barrier()
        if args.rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=11)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    args.rank, args.world_size = dist.get_rank(), dist.get_world_size()
    train(args)
    dist.destroy_process_group()
