"""Lowers the learning rate by the total loss of all ranks, and stops when it is low.

source: https://github.com/rmchurch/disruptcnn/issues/3
bug: RS405
ranks: 2
expect: clean
shows: fine
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    parser = argparse.ArgumentParser(description="disruption prediction")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--min-gain", type=float, default=0.06)
    parser.add_argument("--min-lr", type=float, default=0.03)
    parser.add_argument("--lr-decay", type=float, default=0.1)
    return parser.parse_args([])


def shots(seed, size=32):
    """Diagnostics of plasma shots, and whether each ended in a disruption."""
    generator = torch.Generator().manual_seed(seed)
    signal = torch.randn(size, 10, generator=generator)
    return TensorDataset(signal, (signal[:, :1] > 0.4).float())


def train_epoch(model, loader, optimizer):
    model.train()
    for signal, disrupts in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(signal), disrupts)
        loss.backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, loader):
    """The loss over all validation shots."""
    model.eval()
    total_loss = torch.zeros(1)
    for signal, disrupts in loader:
        output = model.module(signal)
        total_loss += nn.functional.binary_cross_entropy_with_logits(output, disrupts)
    dist.all_reduce(total_loss)
    return total_loss.item()


def main():
    args = parse_args()
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = optim.SGD(model.parameters(), lr=args.lr)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=args.lr_decay, patience=0, threshold=args.min_gain, threshold_mode="abs"
    )
    train_loader = DataLoader(shots(rank), batch_size=8)
    valid_loader = DataLoader(shots(100 + rank, 16), batch_size=8)
    for epoch in range(args.epochs):
        train_epoch(model, train_loader, optimizer)
        scheduler.step(evaluate(model, valid_loader))
        if optimizer.param_groups[0]["lr"] < args.min_lr:
            print(f"rank {rank}: learning rate is low after epoch {epoch}", flush=True)
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
