"""Writes the data on rank 0, waits on all ranks and makes the dataset on each.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/20536
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)


class ActiveLearner:
    """Labels new samples and trains on all of them, round after round."""

    def __init__(self, folder):
        self.path = os.path.join(folder, f"samples_{os.environ['MASTER_PORT']}.pt")

    def make_dataset(self, x, y):
        if dist.get_rank() == 0:
            torch.save((x, y), self.path)
        dist.barrier()
        return TensorDataset(x, y)

    def train(self, dataset, epochs=2):
        model = DistributedDataParallel(Regressor())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        loader = DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset))
        for _ in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
        return loss.item()

    def run(self, rounds=2):
        generator = torch.Generator().manual_seed(0)
        x = torch.empty(0, 3)
        for number in range(rounds):
            x = torch.cat([x, torch.randn(16, 3, generator=generator)])
            dataset = self.make_dataset(x, x.sum(dim=1, keepdim=True))
            print(f"round {number}: loss {self.train(dataset):.3f}", flush=True)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    ActiveLearner(tempfile.gettempdir()).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
