"""A get_rank helper falls back to 0; all ranks gather before rank 0 alone logs and starts a thread that writes.

source: https://github.com/lightonai/pylate/pull/111
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
import queue
import threading
from datetime import timedelta

import torch
import torch.distributed as dist


def get_rank() -> int:
    """This rank, 0 where nothing is distributed."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank()
    return 0


class BackgroundWriter(threading.Thread):
    """Writes scalars without holding up the training."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.items: queue.Queue[tuple[int, float] | None] = queue.Queue()

    def run(self) -> None:
        while (item := self.items.get()) is not None:
            step, value = item
            print(f"step {step}: {value:.3f}", flush=True)


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    writer = None
    if get_rank() == 0:
        writer = BackgroundWriter()
        writer.start()
    for step in range(3):
        loss = torch.rand(1)
        losses = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(losses, loss)
        if get_rank() != 0:
            continue
        writer.items.put((step, torch.cat(losses).mean().item()))
    if writer is not None:
        writer.items.put(None)
        writer.join()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
