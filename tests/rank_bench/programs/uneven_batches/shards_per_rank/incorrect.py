"""Stream three shards on two ranks; the rank that reads two of them trains on more batches than the other.

source: https://github.com/webdataset/webdataset/issues/225
bug: RS406
ranks: 2
expect: RS406
line: for features, labels in loader:
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset

SHARDS = {"train-000.tar": 24, "train-001.tar": 24, "train-002.tar": 24}


class ShardedDataset(IterableDataset):
    def __init__(self, shards, rank, world_size):
        self.shards = sorted(shards)[rank::world_size]

    def num_batches(self, batch_size):
        return sum(SHARDS[name] for name in self.shards) // batch_size

    def __iter__(self):
        for name in self.shards:
            generator = torch.Generator().manual_seed(int(name[6:9]))
            for _ in range(SHARDS[name]):
                features = torch.randn(4, generator=generator)
                yield features, int(features.sum() > 0)


def train_one_epoch(model, dataset, optimizer, batch_size=8):
    loader = DataLoader(dataset, batch_size=batch_size)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for features, labels in loader:
        optimizer.zero_grad()
        criterion(model(features), labels).backward()
        optimizer.step()


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = int(os.environ["RANK"])
    dataset = ShardedDataset(SHARDS, rank, int(os.environ["WORLD_SIZE"]))
    print(f"rank {rank} reads {dataset.shards}: {dataset.num_batches(8)} batches")
    model = DDP(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        train_one_epoch(model, dataset, optimizer)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
