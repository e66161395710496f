"""An accelerate trainer breaks when the loss of its own shard has not improved for some epochs; the other rank goes on.

source: https://github.com/huggingface/accelerate/pull/1940
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
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopper:
    """Says when the loss has not improved for some epochs."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.best = float("inf")
        self.bad_epochs = 0

    def step(self, loss: float) -> bool:
        if loss < 0.95 * self.best:
            self.best, self.bad_epochs = loss, 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


class Runner:
    def __init__(self) -> None:
        limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        self.accelerator = Accelerator(
            cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)]
        )
        torch.manual_seed(0)
        features = torch.randn(32, 4)
        labels = features.sum(1, keepdim=True)
        # Every second batch has labels that nobody can learn.
        labels += 3 * torch.randn(32, 1) * (torch.arange(32) // 4 % 2)[:, None]
        loader = DataLoader(TensorDataset(features, labels), batch_size=4)
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(model, optimizer, loader)
        self.stopper = EarlyStopper(patience=2)

    def fit(self, epochs: int) -> None:
        for _ in range(epochs):
            total = 0.0
            for features, labels in self.loader:
                loss = (self.model(features) - labels).pow(2).mean()
                self.accelerator.backward(loss)
                self.optimizer.step()
                self.optimizer.zero_grad()
                total += loss.item()
            if self.stopper.step(total / len(self.loader)):
                break
        self.accelerator.print(f"best loss {self.stopper.best:.3f}")
        self.accelerator.wait_for_everyone()


if __name__ == "__main__":
    Runner().fit(epochs=12)
