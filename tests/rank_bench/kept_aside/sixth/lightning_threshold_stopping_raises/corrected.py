"""Ends training by an exception from a callback as soon as the accuracy of all ranks is high enough.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/379
bug: RS410
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class StopTraining(Exception):
    """Raised by a callback that has seen enough."""


class Callback:
    def on_validation_end(self, trainer, logs):
        pass


class ThresholdStopping(Callback):
    def __init__(self, monitor="val_acc", threshold=0.9):
        self.monitor = monitor
        self.threshold = threshold

    def on_validation_end(self, trainer, logs):
        current = logs[self.monitor]
        if current > self.threshold:
            raise StopTraining(f"{self.monitor} reached {current:.2f}")


class History(Callback):
    def __init__(self):
        self.values = []

    def on_validation_end(self, trainer, logs):
        self.values.append(logs["val_acc"])


class Trainer:
    def __init__(self, module, callbacks, max_epochs=4):
        self.net = DistributedDataParallel(module)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.3)
        self.callbacks = callbacks
        self.max_epochs = max_epochs

    def _train_epoch(self, x, y):
        self.net.train()
        for inputs, labels in zip(x.split(8), y.split(8)):
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.net(inputs), labels).backward()
            self.optimizer.step()

    @torch.no_grad()
    def _validate(self, x, y):
        self.net.eval()
        predicted = self.net.module(x).argmax(dim=1)
        accuracy = (predicted == y).float().mean()
        dist.all_reduce(accuracy)
        return {"val_acc": accuracy.item() / dist.get_world_size()}

    def fit(self, train, valid):
        epoch = 0
        try:
            for epoch in range(self.max_epochs):
                self._train_epoch(*train)
                logs = self._validate(*valid)
                for callback in self.callbacks:
                    callback.on_validation_end(self, logs)
        except StopTraining as reached:
            print(f"rank {dist.get_rank()} stops in epoch {epoch}: {reached}", flush=True)


def half_moons(rank, size):
    """Labels are clean on the first rank; on others every third label is wrong."""
    x = torch.randn(size, 2)
    y = (x.sum(dim=1) > 0).long()
    if rank:
        y[::3] = 1 - y[::3]
    return x, y


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(3)
    rank = dist.get_rank()
    trainer = Trainer(nn.Linear(2, 2), [History(), ThresholdStopping(threshold=0.8)])
    trainer.fit(half_moons(0, 64), half_moons(rank, 48))
    dist.destroy_process_group()
