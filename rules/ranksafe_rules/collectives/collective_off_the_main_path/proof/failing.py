"""The scheduler's signal reaches rank 1 only, whose handler waits for a rank that goes on training.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: Timed out waiting 5000ms for
frame: dist.barrier()
"""

import os
import signal
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def save_and_stop(number: int, frame: object) -> None:
    dist.barrier()
    print(f"rank {dist.get_rank()}: saved after signal {number}")


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    signal.signal(signal.SIGUSR1, save_and_stop)
    for step in range(3):
        if step == 1 and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.5)
        loss = torch.tensor(float(step))
        dist.all_reduce(loss)
    print(f"rank {dist.get_rank()}: done")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
