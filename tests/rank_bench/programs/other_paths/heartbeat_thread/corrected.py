"""The main thread counts the living ranks after the last step; no other thread performs collectives.

source: https://github.com/pytorch/pytorch/issues/175145
bug: RS414
ranks: 2
expect: clean
shows: fine
"""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def report_alive() -> None:
    """Prints how many ranks are still there."""
    alive = torch.ones(1)
    dist.all_reduce(alive)
    print(f"rank {dist.get_rank()}: {alive.item():.0f} ranks alive", flush=True)


def train_step(rank: int, step: int) -> torch.Tensor:
    # The first rank also reads the data of the others, but for the first step.
    time.sleep(2.0 if rank == 0 and step > 0 else 0.0)
    return torch.full((1,), 100.0)


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = dist.get_rank()
    dist.barrier()
    for step in range(2):
        loss = train_step(rank, step)
        dist.all_reduce(loss)
        print(f"rank {rank}: step {step} loss {loss.item():.0f}", flush=True)
    report_alive()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
