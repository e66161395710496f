"""Trains on an iterable data set that deals its samples to the ranks in turn; one rank gets a batch more than the other.

source: https://github.com/pytorch/pytorch/issues/141069
bug: RS406
ranks: 2
expect: RS406
line: for batch_idx, (x, y) in enumerate(train_loader):
decidable: yes
shows: error Received data size doesn't match expected size
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class StreamDataset(IterableDataset):
    def __init__(self, length, rank, world_size):
        self.length = length
        self.rank = rank
        self.world_size = world_size

    def __iter__(self):
        generator = torch.Generator().manual_seed(7)
        for index in range(self.length):
            x = torch.randn(6, generator=generator)
            if index % self.world_size == self.rank:
                yield x, x.sum().unsqueeze(0)


def single_step(model, batch, criterion):
    x, y = batch
    return criterion(model(x), y)


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    train_loader = DataLoader(StreamDataset(25, rank, world_size), batch_size=1)
    val_loader = DataLoader(StreamDataset(8, rank, world_size), batch_size=2)
    model = DDP(nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.MSELoss()

    for epoch in range(2):
        model.train()
        for batch_idx, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = single_step(model, (x, y), criterion)
            loss.backward()
            optimizer.step()
        model.eval()
        val_loss = torch.zeros(1)
        with torch.no_grad():
            for batch in val_loader:
                val_loss += single_step(model, batch, criterion)
        dist.all_reduce(val_loss)
        print(f"[rank {rank}] epoch {epoch}: {batch_idx + 1} batches, {val_loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
