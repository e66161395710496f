"""Computes a metric that reduces its state at the end of validation under a check for global rank 0, then waits for all.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/4529
bug: RS401
ranks: 2
expect: RS401
line: out = self.metric.compute()
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Accuracy:
    def __init__(self):
        self.reset()

    def reset(self):
        self.correct = torch.zeros(())
        self.total = torch.zeros(())

    def update(self, preds, target):
        self.correct += (preds.argmax(dim=1) == target).sum()
        self.total += target.numel()

    def compute(self):
        for state in (self.correct, self.total):
            dist.all_reduce(state)
        value = self.correct / self.total
        self.reset()
        return value


class LitClassifier:
    def __init__(self):
        self.global_rank = dist.get_rank()
        self.net = DistributedDataParallel(nn.Linear(8, 3))
        self.metric = Accuracy()
        self.logged = {}

    def log(self, name, value):
        self.logged[name] = float(value)

    def training_step(self, batch):
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def validation_step(self, batch):
        x, y = batch
        self.metric.update(self.net.module(x), y)

    def validation_epoch_end(self):
        if self.global_rank == 0:
            out = self.metric.compute()
            self.log("metric", out)
        dist.barrier()


def get_loader(size, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 8, generator=generator)
    dataset = TensorDataset(x, x[:, :3].argmax(dim=1))
    return DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))


def fit(model, train_loader, val_loader, max_epochs=2):
    optimizer = torch.optim.Adam(model.net.parameters(), lr=1e-2)
    for epoch in range(max_epochs):
        for batch in train_loader:
            optimizer.zero_grad()
            model.training_step(batch).backward()
            optimizer.step()
        with torch.no_grad():
            for batch in val_loader:
                model.validation_step(batch)
        model.validation_epoch_end()


if __name__ == "__main__":
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    model = LitClassifier()
    fit(model, get_loader(64, 0), get_loader(32, 1))
    if model.global_rank == 0:
        print(model.logged, flush=True)
    dist.destroy_process_group()
