"""The first pipeline stage starts isend from its only buffer, drops the work, and writes the next activation into it.

source: https://github.com/pytorch/pytorch/pull/61875
bug: RS413
ranks: 2
expect: RS413
line: dist.isend(self.buffer, dst=self.rank + 1)
decidable: yes
shows: hang
"""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist

MICRO_BATCHES = 4
WIDTH = 1 << 20


class Stage:
    """One stage of a pipeline with a single buffer for what it sends or receives."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.buffer = torch.zeros(WIDTH)

    def send(self, activation: torch.Tensor) -> None:
        self.buffer.copy_(activation)
        dist.isend(self.buffer, dst=self.rank + 1)

    def receive(self) -> torch.Tensor:
        dist.recv(self.buffer, src=self.rank - 1)
        return self.buffer.clone()


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    stage = Stage()
    if stage.rank == 0:
        for index in range(MICRO_BATCHES):
            stage.send(torch.full((WIDTH,), float(index)))
    else:
        time.sleep(1.0)  # building the second half of the model
        for index in range(MICRO_BATCHES):
            activation = stage.receive()
            print(f"micro-batch {index} arrived as {activation.mean():.1f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
