"""Trains within the join context of DistributedDataParallel, which stands in for workers that have run out of data.

source: https://github.com/intel/ipex-llm/pull/3626
bug: RS406
ranks: 3
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def partition(rows, num_workers):
    """Full partitions for all workers but the last, which has what is left."""
    size = -(-len(rows) // num_workers)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


class TrainingOperator:
    def __init__(self, model, optimizer, criterion):
        self.model = model
        self.optimizer = optimizer
        self.criterion = criterion

    def train_batch(self, batch):
        features, target = batch
        output = self.model(features)
        loss = self.criterion(output, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"train_loss": loss.item(), "num_samples": len(target)}

    def train_epoch(self, data_loader):
        total_loss, num_samples = 0.0, 0
        with self.model.join():
            for batch in data_loader:
                metrics = self.train_batch(batch)
                total_loss += metrics["train_loss"] * metrics["num_samples"]
                num_samples += metrics["num_samples"]
        return total_loss / num_samples


class TorchRunner:
    def __init__(self, model_creator, rank, num_workers):
        self.rank, self.num_workers = rank, num_workers
        model = model_creator()
        self.operator = TrainingOperator(
            DistributedDataParallel(model),
            torch.optim.Adam(model.parameters(), lr=1e-2),
            nn.BCEWithLogitsLoss(),
        )

    def train_epochs(self, rows, epochs, batch_size):
        shard = partition(rows, self.num_workers)[self.rank]
        target = (shard.sum(dim=1, keepdim=True) > 0).float()
        loader = DataLoader(TensorDataset(shard, target), batch_size=batch_size)
        return [self.operator.train_epoch(loader) for _ in range(epochs)]


if __name__ == "__main__":
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    runner = TorchRunner(lambda: nn.Linear(6, 1), dist.get_rank(), dist.get_world_size())
    rows = torch.randn(37, 6, generator=torch.Generator().manual_seed(0))
    print(runner.train_epochs(rows, epochs=2, batch_size=4), flush=True)
    dist.destroy_process_group()
