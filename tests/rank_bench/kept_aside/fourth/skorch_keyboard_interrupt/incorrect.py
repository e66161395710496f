"""Ends fitting with an exception that a callback raises when the validation loss of this process has stopped improving.

source: https://github.com/skorch-dev/skorch/issues/737
bug: RS410
ranks: 2
expect: RS410
line: except KeyboardInterrupt:
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class EarlyStopping:
    def __init__(self, monitor="valid_loss", patience=2):
        self.monitor, self.patience = monitor, patience

    def on_train_begin(self, net):
        self.misses_, self.best_ = 0, float("inf")

    def on_epoch_end(self, net):
        current = net.history[-1][self.monitor]
        self.misses_ = 0 if current < self.best_ else self.misses_ + 1
        self.best_ = min(self.best_, current)
        if self.misses_ == self.patience:
            raise KeyboardInterrupt


class NeuralNet:
    def __init__(self, module, criterion, lr=0.05, max_epochs=10, callbacks=()):
        self.module_ = DistributedDataParallel(module)
        self.criterion_ = criterion
        self.optimizer_ = torch.optim.SGD(module.parameters(), lr=lr)
        self.max_epochs = max_epochs
        self.callbacks = list(callbacks)
        self.history = []

    def notify(self, method):
        for callback in self.callbacks:
            getattr(callback, method, lambda net: None)(self)

    def train_step(self, xi, yi):
        self.optimizer_.zero_grad()
        loss = self.criterion_(self.module_(xi), yi)
        loss.backward()
        self.optimizer_.step()
        return loss.item()

    @torch.no_grad()
    def validation_step(self, xi, yi):
        loss = self.criterion_(self.module_.module(xi), yi)
        return loss.item()

    def fit_loop(self, train, valid):
        for _ in range(self.max_epochs):
            losses = [self.train_step(xi, yi) for xi, yi in train]
            valid_losses = [self.validation_step(xi, yi) for xi, yi in valid]
            self.history.append(
                {"train_loss": sum(losses), "valid_loss": sum(valid_losses) / len(valid_losses)}
            )
            self.notify("on_epoch_end")

    def fit(self, train, valid):
        self.notify("on_train_begin")
        self.interrupted_ = False
        try:
            self.fit_loop(train, valid)
        except KeyboardInterrupt:
            self.interrupted_ = True
        return self


def make_data(rank, world_size, flipped=0):
    x = torch.randn(32, 4, generator=torch.Generator().manual_seed(5))
    y = x.sum(dim=1, keepdim=True)
    y[len(y) - flipped :] *= -1  # the last samples were labelled by somebody else
    share = slice(rank * len(x) // world_size, (rank + 1) * len(x) // world_size)
    return list(zip(x[share].split(4), y[share].split(4), strict=True))


if __name__ == "__main__":
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    place = dist.get_rank(), dist.get_world_size()
    module = nn.Linear(4, 1)
    nn.init.zeros_(module.weight)
    net = NeuralNet(module, nn.MSELoss(), callbacks=[EarlyStopping()])
    net.fit(make_data(*place), make_data(*place, flipped=16))
    print(f"rank {place[0]}: {len(net.history)} epochs", flush=True)
    dist.destroy_process_group()
