"""Evaluates on every rank and computes the metric on every rank; rank 0 prints it.

source: https://github.com/Lightning-AI/torchmetrics/issues/938
bug: RS401
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from metrics import DistributedAccuracy
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def make_loader(count: int, rank: int, world_size: int) -> DataLoader:
    generator = torch.Generator().manual_seed(count)
    inputs = torch.randn(count, 10, generator=generator)
    dataset = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank, shuffle=False)
    return DataLoader(dataset, batch_size=8, sampler=sampler)


@torch.no_grad()
def test(model: DDP, loader: DataLoader, metric: DistributedAccuracy, rank: int) -> None:
    model.eval()
    metric.reset()
    for inputs, labels in loader:
        metric.update(model.module(inputs).argmax(dim=1), labels)
    accuracy = metric.compute()
    if rank == 0:
        print(f"accuracy {accuracy:.3f}", flush=True)
    model.train()


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = DDP(nn.Linear(10, 2), broadcast_buffers=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_loader = make_loader(64, rank, world_size)
    test_loader = make_loader(32, rank, world_size)
    metric = DistributedAccuracy()
    for _ in range(2):
        for inputs, labels in train_loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        test(model, test_loader, metric, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
