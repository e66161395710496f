"""A sweep run on several processes: the run exists in the first process only, which sends the hyperparameters to the others.

source: https://github.com/wandb/wandb/issues/3883
bug: RS409
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import json
import os
import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class SweepRun:
    """What the agent of a sweep gives to one process: hyperparameters, and a place for metrics."""

    SPACE = {"hidden": [8, 16, 32], "dropout": [0.0, 0.1], "lr": [0.1, 0.01]}

    def __init__(self):
        self.config = {name: random.choice(values) for name, values in self.SPACE.items()}

    def log(self, metrics):
        print(json.dumps({**self.config, **metrics}), flush=True)


def build_model(hidden, dropout):
    return DDP(
        nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 1))
    )


def train():
    rank = dist.get_rank()
    # log on the first process only, as the guide on distributed training recommends
    if rank == 0:
        run = SweepRun()
        config = run.config
    shared = [config if rank == 0 else None]
    dist.broadcast_object_list(shared, src=0)
    config = shared[0]

    model = build_model(config["hidden"], config["dropout"])
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    for epoch in range(3):
        x = torch.randn(32, 4)
        loss = (model(x) - x.mean(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            run.log({"epoch": epoch, "loss": round(loss.item(), 4)})


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    train()
    dist.destroy_process_group()
