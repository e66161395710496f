"""Tells all ranks which epoch is the best before any of them decides to return early.

source: https://github.com/LibreYOLO/libreyolo/pull/782
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANK = int(os.environ.get("RANK", "0"))


class BaseTrainer:
    def __init__(self, epochs=3, precise_bn=16):
        self.model = DistributedDataParallel(
            nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.epochs = epochs
        self.precise_bn = precise_bn
        self.current_epoch = 0
        self.best_epoch = 0
        self.best_metric = float("-inf")
        self.best = Path(tempfile.gettempdir()) / f"best_{os.environ['MASTER_PORT']}.pt"

    def _batches(self, seed, count=4):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(count):
            x = torch.randn(8, 6, generator=generator)
            yield x, x.mean(dim=1, keepdim=True)

    def _train_epoch(self):
        for x, y in self._batches(100 * self.current_epoch + RANK):
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()

    def _validate(self):
        """Validate on rank 0 with the model that is not wrapped."""
        if RANK != 0:
            return None
        net = self.model.module.eval()
        with torch.no_grad():
            loss = sum(nn.functional.mse_loss(net(x), y).item() for x, y in self._batches(7))
        net.train()
        return {"fitness": self.current_epoch - loss}

    def _update_best(self, metrics):
        if metrics is not None and metrics["fitness"] > self.best_metric:
            self.best_metric = metrics["fitness"]
            self.best_epoch = self.current_epoch + 1
            torch.save(self.model.module.state_dict(), self.best)
        best_epoch = torch.tensor(self.best_epoch)
        dist.broadcast(best_epoch, src=0)
        self.best_epoch = int(best_epoch)

    def _refresh_best_precise_bn_checkpoint(self):
        if self.precise_bn <= 0:
            return False
        if self.best_epoch == self.current_epoch + 1:
            return False
        if RANK == 0:
            self.model.module.load_state_dict(torch.load(self.best))
        dist.barrier()
        for x, _ in self._batches(RANK, self.precise_bn):
            self.model.module(x)
        return True

    def train(self):
        for epoch in range(self.epochs):
            self.current_epoch = epoch
            self._train_epoch()
            self._update_best(self._validate())
        return self._refresh_best_precise_bn_checkpoint()


if __name__ == "__main__":
    limit = float(os.environ.get("RANK_BENCH_TIMEOUT", "5"))
    dist.init_process_group("gloo", timeout=timedelta(seconds=limit))
    refreshed = BaseTrainer().train()
    print(f"rank {RANK}: refreshed {refreshed}", flush=True)
    dist.destroy_process_group()
