"""Computes the metric on all processes and hands the value to the method that only the main process runs.

source: https://github.com/Lightning-AI/torchmetrics/pull/2719
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, PartialState
from accelerate.utils import InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])


class MeanSquaredError:
    """A metric whose state is summed over the processes in compute."""

    def __init__(self):
        self.sum_squared_error = torch.zeros(1)
        self.total = torch.zeros(1)

    def update(self, preds, target):
        self.sum_squared_error += (preds - target).pow(2).sum()
        self.total += target.numel()

    def compute(self):
        error = accelerator.reduce(self.sum_squared_error)
        total = accelerator.reduce(self.total)
        return (error / total).item()


class RegressionTask:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
        self.val_error = MeanSquaredError()

    def fit(self, train_loader, val_loader, epochs=2):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.model, optimizer, train_loader, val_loader = accelerator.prepare(
            self.model, optimizer, train_loader, val_loader
        )
        for epoch in range(epochs):
            for x, y in train_loader:
                optimizer.zero_grad()
                accelerator.backward(nn.functional.mse_loss(self.model(x), y))
                optimizer.step()
            with torch.no_grad():
                for x, y in val_loader:
                    self.val_error.update(self.model(x), y)
            self.on_validation_epoch_end(epoch, self.val_error.compute())

    @PartialState().on_main_process
    def on_validation_epoch_end(self, epoch, value):
        print(f"epoch {epoch}: val_error {value:.4f}", flush=True)


def loader(size):
    x = torch.randn(size, 5, generator=torch.Generator().manual_seed(size))
    return DataLoader(TensorDataset(x, x.mean(dim=1, keepdim=True)), batch_size=8)


if __name__ == "__main__":
    RegressionTask().fit(loader(64), loader(32))
    accelerator.wait_for_everyone()
    accelerator.end_training()
