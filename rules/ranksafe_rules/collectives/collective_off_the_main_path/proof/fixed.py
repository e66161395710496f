"""The handler only sets a flag, which the ranks agree on in every step of the training loop.

runs-on: cpu-ranks
ranks: 2
expect: output rank 0: saved at step 1
expect: output rank 1: saved at step 1
"""

import os
import signal
from datetime import timedelta

import torch
import torch.distributed as dist

asked_to_stop = False


def ask_to_stop(number: int, frame: object) -> None:
    global asked_to_stop
    asked_to_stop = True


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    signal.signal(signal.SIGUSR1, ask_to_stop)
    for step in range(3):
        if step == 1 and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGUSR1)
        loss = torch.tensor(float(step))
        dist.all_reduce(loss)
        stop = torch.tensor(float(asked_to_stop))
        dist.all_reduce(stop, op=dist.ReduceOp.MAX)
        if stop.item() > 0:
            print(f"rank {dist.get_rank()}: saved at step {step}")
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
