"""Checks finished cache writes; ranks without the writer role return before the all_reduce of the count.

source: https://github.com/sgl-project/sglang/pull/26923
bug: RS401
ranks: 2
expect: RS401
line: dist.all_reduce(finished, op=dist.ReduceOp.MAX)
decidable: yes
shows: error Received data size doesn't match expected size
"""

import argparse
import os
from collections import deque
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class HostCache:
    """Writes finished blocks through to host memory and keeps all ranks agreed on how many."""

    def __init__(self, enable: bool) -> None:
        self.rank = dist.get_rank()
        self.enable = enable
        self.pending: deque[torch.Tensor] = deque()
        self.host: list[torch.Tensor] = []

    def write_through(self, block: torch.Tensor) -> None:
        if self.enable and self.rank == 0:
            self.pending.append(block.clone())

    def writing_check(self) -> int:
        if self.rank != 0 or not self.enable:
            return 0
        count = len(self.pending)
        finished = torch.tensor([count])
        dist.all_reduce(finished, op=dist.ReduceOp.MAX)
        while self.pending:
            self.host.append(self.pending.popleft())
        return int(finished.item())


class Scheduler:
    def __init__(self, cache: HostCache, model: nn.Module) -> None:
        self.cache = cache
        self.model = model

    @torch.no_grad()
    def run_batch(self, batch: torch.Tensor) -> torch.Tensor:
        partial = self.model(batch)
        dist.all_reduce(partial)
        self.cache.write_through(partial)
        return partial

    def event_loop(self, batches: int) -> int:
        written = 0
        for _ in range(batches):
            self.run_batch(torch.ones(4, 8))
            written += self.cache.writing_check()
        return written


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-hierarchical-cache", dest="cache", action="store_false")
    parser.add_argument("--batches", type=int, default=3)
    args = parser.parse_args()
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    scheduler = Scheduler(HostCache(args.cache), nn.Linear(8, 16))
    written = scheduler.event_loop(args.batches)
    print(f"rank {dist.get_rank()}: {written} blocks", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
