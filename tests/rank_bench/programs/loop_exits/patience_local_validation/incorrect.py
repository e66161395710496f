"""Train with early stopping; the patience counts the loss of the rank's own validation shard, so the ranks leave the loop in different epochs.

source: https://github.com/Lightning-AI/pytorch-lightning/pull/2467
bug: RS404
ranks: 2
expect: RS404
line: break
decidable: yes
shows: hang
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.best = float("inf")
        self.wait_count = 0

    def should_stop(self, loss):
        if loss < self.best:
            self.best, self.wait_count = loss, 0
        else:
            self.wait_count += 1
        return self.wait_count >= self.patience


def make_loader(mislabelled=False):
    features = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    targets = features.sum(dim=1, keepdim=True)
    if mislabelled:
        targets[1::2] *= -1
    dataset = TensorDataset(features, targets)
    return DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))


@torch.no_grad()
def validate(model, loader, criterion):
    losses = [criterion(model(features), targets) for features, targets in loader]
    return torch.stack(losses).mean().item()


def main(args):
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.MSELoss()
    train_loader, val_loader = make_loader(), make_loader(mislabelled=True)
    stopping = EarlyStopping(args.patience)
    for _ in range(args.epochs):
        for features, targets in train_loader:
            optimizer.zero_grad()
            criterion(model(features), targets).backward()
            optimizer.step()
        if stopping.should_stop(validate(model, val_loader, criterion)):
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--patience", type=int, default=2)
    main(parser.parse_args())
