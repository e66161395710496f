"""Only rank 0 validates and breaks out of the epoch loop when its patience ends; the other ranks train the next epoch and wait for it.

source: https://github.com/ultralytics/yolov5/pull/4576
bug: RS404
ranks: 3
expect: RS404
line: break
decidable: yes
shows: hang sometimes
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from engine import build_loader, fitness, train_one_epoch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

LOCAL_RANK = int(os.getenv("LOCAL_RANK", "-1"))
RANK = int(os.getenv("RANK", "-1"))


class EarlyStopping:
    def __init__(self, patience=30):
        self.best_fitness = float("-inf")
        self.best_epoch = 0
        self.patience = patience

    def __call__(self, epoch, value):
        if value > self.best_fitness:
            self.best_fitness, self.best_epoch = value, epoch
        return epoch - self.best_epoch >= self.patience


def train(epochs=10, patience=2):
    model = DDP(nn.Linear(5, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader, val_images = build_loader(RANK, dist.get_world_size())
    stopper = EarlyStopping(patience)
    for epoch in range(epochs):
        train_one_epoch(model, loader, optimizer)
        if RANK in {-1, 0}:
            value = fitness(model.module, val_images)
            print(f"epoch {epoch}: fitness {value:.3f}")
            if stopper(epoch, value):
                break
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    train()
    dist.destroy_process_group()
