"""Rank 0 alone watches the fitness and sends its decision to all ranks, which then leave the loop together.

source: https://github.com/ultralytics/yolov5/pull/8345
bug: RS404
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

RANK = int(os.environ.get("RANK", "-1"))


class EarlyStopping:
    def __init__(self, patience: int) -> None:
        self.best_fitness = float("-inf")
        self.best_epoch = 0
        self.patience = patience

    def __call__(self, epoch: int, fitness: float) -> bool:
        if fitness > self.best_fitness:
            self.best_epoch, self.best_fitness = epoch, fitness
        return epoch - self.best_epoch >= self.patience


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(RANK)
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    stopper, stop = EarlyStopping(patience=2), False
    for epoch in range(50):
        loss = model(torch.randn(4, 8)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK in {-1, 0}:
            stop = stopper(epoch=epoch, fitness=-loss.item())
        if RANK != -1:
            decision = [stop if RANK == 0 else None]
            dist.broadcast_object_list(decision, src=0)
            if RANK != 0:
                stop = decision[0]
        if stop:
            break
    print(f"rank {RANK}: {epoch + 1} epochs", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
