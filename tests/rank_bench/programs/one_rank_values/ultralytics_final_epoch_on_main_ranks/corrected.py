"""Sets final_epoch on all ranks before the block of the main ranks.

source: https://github.com/ultralytics/ultralytics/issues/22598
bug: RS409
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

RANK = int(os.getenv("RANK", -1))


class ModelEMA:
    def __init__(self, model):
        self.updates = 0
        self.names = ()

    def update_attr(self, model, include=()):
        self.names = tuple(include)


class BaseTrainer:
    def __init__(self, args):
        self.args = args
        self.epochs = args.epochs
        self.stop = False
        self.model = nn.Linear(4, 2)
        self.ema = ModelEMA(self.model) if RANK in {-1, 0} else None

    def _setup_ddp(self, world_size):
        timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        dist.init_process_group("gloo", timeout=timeout, rank=RANK, world_size=world_size)

    def validate(self):
        loss = self.model(torch.ones(2, 4)).pow(2).mean().detach()
        if RANK != -1:
            dist.all_reduce(loss)
        return loss.item()

    def _do_train(self, world_size):
        if world_size > 1:
            self._setup_ddp(world_size)
            self.model = nn.parallel.DistributedDataParallel(self.model)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        for epoch in range(self.epochs):
            loss = self.model(torch.randn(4, 4)).pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            final_epoch = epoch + 1 >= self.epochs
            if RANK in {-1, 0}:
                self.ema.update_attr(self.model, include=["yaml", "nc", "names"])
            if self.args.val or final_epoch or self.stop:
                metrics = self.validate()
                print(f"rank {RANK} epoch {epoch}: {metrics:.3f}")
        if world_size > 1:
            dist.barrier()
            dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--val", action="store_true")
    BaseTrainer(parser.parse_args())._do_train(int(os.getenv("WORLD_SIZE", "1")))
