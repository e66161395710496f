"""Averages the validation loss over the ranks before deciding whether to save a checkpoint.

source: https://github.com/vllm-project/speculators/pull/324
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import gettempdir

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class TrainerConfig:
    num_epochs: int = 4
    lr: float = 0.05
    save_best: bool = True


class DistributedCheckpointer:
    def __init__(self, path):
        self.path = Path(path)

    def save_checkpoint(self, model, epoch):
        if dist.get_rank() == 0:
            self.path.mkdir(exist_ok=True)
            torch.save(model.module.state_dict(), self.path / f"{epoch}.pt")
        dist.barrier()


class Trainer:
    def __init__(self, model, config, train_data, val_data, checkpointer):
        self.model, self.config, self.checkpointer = model, config, checkpointer
        self.train_data, self.val_data = train_data, val_data
        self.opt = torch.optim.SGD(model.parameters(), lr=config.lr)

    def train_epoch(self):
        for x, y in self.train_data:
            self.opt.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.opt.step()

    @torch.no_grad()
    def val_epoch(self):
        losses = [nn.functional.mse_loss(self.model(x), y) for x, y in self.val_data]
        val_loss = torch.stack(losses).mean()
        dist.all_reduce(val_loss)
        return val_loss.item()

    def _should_save_checkpoint(self, val_loss, best_val_loss):
        return not self.config.save_best or val_loss < best_val_loss

    def save_checkpoint(self, epoch):
        self.checkpointer.save_checkpoint(self.model, epoch)

    def run_training(self):
        best_val_loss = float("inf")
        for epoch in range(self.config.num_epochs):
            self.train_epoch()
            val_loss = self.val_epoch()
            if self._should_save_checkpoint(val_loss, best_val_loss):
                self.save_checkpoint(epoch)
                best_val_loss = val_loss


def make_data(rank, world_size, hard=False):
    x = torch.randn(48, 4, generator=torch.Generator().manual_seed(1))
    y = x.sum(dim=1, keepdim=True)
    if hard:  # half of the documents come from another domain
        y[len(y) // 2 :] *= -1
    x, y = x.chunk(world_size)[rank], y.chunk(world_size)[rank]
    return list(zip(x.split(8), y.split(8), strict=True))


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = nn.Linear(4, 1)
    nn.init.zeros_(model.weight)
    checkpointer = DistributedCheckpointer(f"{gettempdir()}/spec_{os.environ['MASTER_PORT']}")
    data = make_data(rank, world_size), make_data(rank, world_size, hard=True)
    Trainer(DDP(model), TrainerConfig(), *data, checkpointer).run_training()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
