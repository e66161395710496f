"""Trains with DDP and stops early on the validation loss, of which every rank has its own.

source: https://github.com/pytorch/pytorch/issues/134920
bug: RS404
ranks: 2
expect: RS404
line: break
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class EarlyStopping:
    def __init__(self, patience=2):
        self.patience = patience
        self.best_loss = None
        self.counter = 0
        self.early_stop = False

    def __call__(self, val_loss):
        if self.best_loss is None or val_loss < self.best_loss:
            self.best_loss = val_loss
            self.counter = 0
        else:
            self.counter += 1
            self.early_stop = self.counter >= self.patience


def run_epoch(model, loader, criterion, optimizer=None):
    total = 0.0
    for src, tgt in loader:
        loss = criterion(model(src), tgt)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total / len(loader)


def make_loader(size, noise):
    src = torch.randn(size, 10)
    tgt = src.sum(1, keepdim=True) + noise * torch.randn(size, 1)
    dataset = TensorDataset(src, tgt)
    return DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))


def train(rank, num_epochs=40):
    torch.manual_seed(0)
    train_loader, valid_loader = make_loader(64, 0.1), make_loader(32, 3.0)
    model = DDP(nn.Linear(10, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    early_stopping = EarlyStopping()
    for epoch in range(num_epochs):
        train_loss = run_epoch(model, train_loader, criterion, optimizer)
        with torch.no_grad():
            val_loss = run_epoch(model, valid_loader, criterion)
        if rank == 0:
            print(f"Epoch {epoch + 1}: {train_loss:.4f} {val_loss:.4f}", flush=True)
        early_stopping(val_loss)
        if early_stopping.early_stop:
            break


if __name__ == "__main__":
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    train(dist.get_rank())
    dist.destroy_process_group()
