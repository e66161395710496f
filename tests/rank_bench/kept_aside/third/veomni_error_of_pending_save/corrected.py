"""Reduces whether a pending asynchronous save had an error on any rank before anybody logs it.

source: https://github.com/ByteDance-Seed/VeOmni/pull/1181
bug: RS410
ranks: 2
expect: clean
shows: fine
"""

import logging
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

logger = logging.getLogger(__name__)


class AsyncCheckpointer:
    def __init__(self, folder):
        self.folder = folder
        self.executor = ThreadPoolExecutor(1)
        self.future = None

    def save(self, state, step):
        path = self.folder / f"step{step}-rank{dist.get_rank()}.pt"
        copy = {name: value.clone() for name, value in state.items()}
        self.future = self.executor.submit(self._write, copy, path)

    def _write(self, state, path):
        with open(path, "wb") as file:
            torch.save(state, file)

    def wait_for_pending_save(self):
        if self.future is None:
            return
        failed = torch.tensor([int(self.future.exception() is not None)])
        self.future = None
        dist.all_reduce(failed)
        if failed.item():
            raise OSError(f"{failed.item()} ranks have not written their part")


def train(checkpointer, steps=4):
    torch.manual_seed(dist.get_rank())
    model = DDP(nn.Linear(7, 7))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        model(torch.randn(2, 7)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 2 == 1:
            try:
                checkpointer.wait_for_pending_save()
            except OSError as error:
                logger.error("rank %d: pending save failed: %s", dist.get_rank(), error)
            checkpointer.save(model.module.state_dict(), step)
    dist.barrier()


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    folder = Path(tempfile.mkdtemp())
    if dist.get_rank() == 1:
        folder = folder / "mount"  # this node has lost its network drive
    train(AsyncCheckpointer(folder))
    print(f"rank {dist.get_rank()}: done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
