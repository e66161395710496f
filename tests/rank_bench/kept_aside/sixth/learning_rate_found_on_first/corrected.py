"""A callback searches for the learning rate on the first rank, and tells it to all.

source: https://github.com/Lightning-AI/pytorch-lightning/pull/15304
bug: RS409
ranks: 2
expect: clean
shows: fine
"""

import copy
import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


@dataclass
class Settings:
    lr: float | None = None
    scale: float = 0.5
    epochs: int = 2


class Callback:
    def before_fit(self, trainer):
        pass

    def after_epoch(self, trainer):
        pass


class LearningRateFinder(Callback):
    """Tries a few rates on a copy of the net; one rank is enough for that."""

    def __init__(self, candidates):
        self.candidates = candidates

    def attempt(self, net, batch, rate):
        net = copy.deepcopy(net)
        loss = net(batch).pow(2).mean()
        for parameter, gradient in zip(
            net.parameters(), torch.autograd.grad(loss, list(net.parameters())), strict=True
        ):
            parameter.data.sub_(rate * gradient)
        return net(batch).pow(2).mean().item()

    def before_fit(self, trainer):
        if dist.get_rank() == 0:
            losses = {
                rate: self.attempt(trainer.net, trainer.data[0], rate) for rate in self.candidates
            }
            trainer.settings.lr = min(losses, key=losses.get)
        found = [trainer.settings.lr]
        dist.broadcast_object_list(found, src=0)
        trainer.settings.lr = found[0]


class OptimizerSetup(Callback):
    def before_fit(self, trainer):
        lr = trainer.settings.lr * trainer.settings.scale
        trainer.model = nn.parallel.DistributedDataParallel(trainer.net)
        trainer.optimizer = torch.optim.SGD(trainer.model.parameters(), lr=lr)


class Trainer:
    def __init__(self, net, data, settings, callbacks):
        self.net, self.data, self.settings, self.callbacks = net, data, settings, callbacks
        self.model = self.optimizer = None

    def notify(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def fit(self):
        self.notify("before_fit")
        for _ in range(self.settings.epochs):
            for batch in self.data:
                loss = self.model(batch).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.notify("after_epoch")


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    data = torch.randn(4, 8, 3).unbind()
    callbacks = [LearningRateFinder([0.001, 0.01, 0.1]), OptimizerSetup()]
    Trainer(nn.Linear(3, 1), data, Settings(), callbacks).fit()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
