"""A timer counts the living ranks with a collective in its own thread, which meets the loss of the slower rank.

source: https://github.com/pytorch/pytorch/issues/175145
bug: RS414
ranks: 2
expect: RS414
line: dist.all_reduce(alive)
decidable: yes
shows: silent rank 1: step 1 loss 101
"""

import os
import threading
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
    heartbeat = threading.Timer(1.0, report_alive)
    heartbeat.start()
    for step in range(2):
        loss = train_step(rank, step)
        dist.all_reduce(loss)
        print(f"rank {rank}: step {step} loss {loss.item():.0f}", flush=True)
    heartbeat.join()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
