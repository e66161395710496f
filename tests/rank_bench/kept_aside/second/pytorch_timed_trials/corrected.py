"""Times a DDP model for a minimal time and number of trials; the first process looks at its clock and tells the others.

source: https://github.com/pytorch/pytorch/issues/22834
bug: RS404
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


def build(width, depth):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers)


def speed(width, depth, mintime=0.5, mintrials=10, maxtrials=100000, batchsize=16):
    """Seconds for a training step."""
    model = DistributedDataParallel(build(width, depth))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    criterion = nn.MSELoss()
    xs = torch.randn(batchsize, width)
    targets = torch.randn(batchsize, width)

    start = time.time()
    for trial in range(maxtrials):
        optimizer.zero_grad()
        ys = model(xs)
        loss = criterion(ys, targets)
        loss.backward()
        optimizer.step()

        finish = time.time()
        elapsed = torch.tensor(finish - start)
        dist.broadcast(elapsed, src=0)
        if elapsed.item() >= mintime and trial >= mintrials:
            break
    return (finish - start) / (trial + 1)


def main():
    limit = float(os.environ.get("RANK_BENCH_TIMEOUT", "5"))
    dist.init_process_group("gloo", timeout=timedelta(seconds=limit))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    for width in (32, 64, 128):
        seconds = speed(width, depth=2)
        if rank == 0:
            print(f"width {width}: {1000 * seconds:.2f} ms", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
