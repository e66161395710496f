"""A callback that draws predictions returns on all ranks but the first, which then waits for them.

source: https://github.com/talmolab/sleap-nn/pull/437
bug: RS401
ranks: 2
expect: RS401
line: trainer.barrier()
decidable: yes
shows: hang
"""

import json
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Callback:
    def on_train_epoch_end(self, trainer):
        pass


class CSVLoggerCallback(Callback):
    def on_train_epoch_end(self, trainer):
        if trainer.is_global_zero:
            print(f"{trainer.epoch},{trainer.loss:.4f}", flush=True)


class UnifiedVizCallback(Callback):
    """Plots what the model predicts for one sample."""

    def __init__(self, sample):
        self.sample = sample

    def on_train_epoch_end(self, trainer):
        if not trainer.is_global_zero:
            return
        with torch.no_grad():
            peaks = trainer.model.module(self.sample).argmax(dim=1)
        print(json.dumps({"epoch": trainer.epoch, "peaks": peaks.tolist()}), flush=True)
        trainer.barrier()


class Trainer:
    def __init__(self, model, callbacks, max_epochs=3):
        self.model = DistributedDataParallel(model)
        self.callbacks = callbacks
        self.max_epochs = max_epochs
        self.is_global_zero = dist.get_rank() == 0

    def barrier(self):
        dist.barrier()

    def fit(self, images, targets):
        optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        for self.epoch in range(self.max_epochs):
            for image, target in zip(images.split(4), targets.split(4), strict=True):
                loss = nn.functional.cross_entropy(self.model(image), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            self.loss = loss.item()
            for callback in self.callbacks:
                callback.on_train_epoch_end(self)


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(dist.get_rank())
    images, targets = torch.randn(16, 10), torch.randint(6, (16,))
    callbacks = [CSVLoggerCallback(), UnifiedVizCallback(images[:2])]
    Trainer(nn.Linear(10, 6), callbacks).fit(images, targets)
    dist.destroy_process_group()
