"""Delays the start of higher ranks, counting down a number of barriers that depends on the local rank.

source: https://github.com/pytorch/pytorch/issues/138322
bug: RS401
ranks: 4
expect: RS401
line: dist.barrier()  # one tick of the start-up clock
decidable: yes
shows: hang
"""

import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TICK = 0.02  # seconds


def wait_for_turn(local_rank: int, ranks_per_disk: int) -> None:
    """Ranks that read from the same disk start one tick after another."""
    ticks = local_rank % ranks_per_disk
    while ticks > 0:
        time.sleep(TICK)
        dist.barrier()  # one tick of the start-up clock
        ticks -= 1


def open_dataset(local_rank: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(local_rank)
    return torch.randn(32, 6, generator=generator)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks-per-disk", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    local_rank = int(os.environ["LOCAL_RANK"])
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    wait_for_turn(local_rank, args.ranks_per_disk)
    data = open_dataset(local_rank)

    model = DistributedDataParallel(nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(args.epochs):
        for batch in data.split(8):
            optimizer.zero_grad()
            loss = model(batch).abs().mean()
            loss.backward()
            optimizer.step()
    if local_rank == 0:
        print(f"loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
