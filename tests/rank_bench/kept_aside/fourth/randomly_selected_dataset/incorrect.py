"""Selects the days to train on at random, without a seed, in each process; the processes get different numbers of batches.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/9851
bug: RS406
ranks: 2
expect: RS406
line: for batch_idx, batch in enumerate(loader):
decidable: yes
shows: hang
"""

import os
import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import ConcatDataset, DataLoader, DistributedSampler, TensorDataset


def seed_everything(seed):
    random.seed(seed)
    torch.manual_seed(seed)


class ClickDataModule:
    """Trains on some of the days, which have more and more rows."""

    def __init__(self, days=30, batch_size=1):
        self.days, self.batch_size = days, batch_size

    def setup(self):
        chosen = [day for day in range(self.days) if random.random() < 0.5]
        parts = []
        for day in chosen:
            x = torch.randn(3 * day + 2, 7, generator=torch.Generator().manual_seed(day))
            parts.append(TensorDataset(x, (x[:, :1] > 0.5).float()))
        self.train = ConcatDataset(parts)

    def train_dataloader(self):
        sampler = DistributedSampler(self.train)
        return DataLoader(self.train, batch_size=self.batch_size, sampler=sampler)


class ClickModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(7, 8), nn.ReLU(), nn.Linear(8, 1))

    def training_step(self, net, batch):
        x, y = batch
        return nn.functional.binary_cross_entropy_with_logits(net(x), y)


class Trainer:
    def __init__(self, max_epochs=1):
        self.max_epochs = max_epochs

    def fit(self, module, datamodule):
        datamodule.setup()
        loader = datamodule.train_dataloader()
        net = DistributedDataParallel(module.net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(self.max_epochs):
            for batch_idx, batch in enumerate(loader):
                optimizer.zero_grad()
                module.training_step(net, batch).backward()
                optimizer.step()
            print(f"{batch_idx + 1}/{len(loader)}", flush=True)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    datamodule = ClickDataModule()
    random.seed()
    Trainer().fit(ClickModel(), datamodule)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
