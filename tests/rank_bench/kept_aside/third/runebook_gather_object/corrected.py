"""Gathers reports in a list with a place for each rank.

source: https://runebook.dev/en/docs/pytorch/distributed/torch.distributed.gather_object
bug: RS408
ranks: 2
expect: clean
shows: fine
"""

import os
import platform
import time
from datetime import timedelta

import torch
import torch.distributed as dist


class Worker:
    def __init__(self):
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()

    def benchmark(self, size=64, repeat=5):
        matrix = torch.randn(size, size)
        begin = time.perf_counter()
        for _ in range(repeat):
            matrix = torch.tanh(matrix @ matrix)
        return (time.perf_counter() - begin) / repeat

    def collect(self, report):
        """Reports of all ranks on the first one; None on the others."""
        reports = [None] * self.world_size if self.rank == 0 else None
        dist.gather_object(report, reports, dst=0)
        return reports

    def run(self):
        seconds = self.benchmark()
        reports = self.collect({"host": platform.node(), "rank": self.rank, "seconds": seconds})
        if self.rank == 0:
            slowest = max(reports, key=lambda entry: entry["seconds"])
            print(f"{len(reports)} reports, slowest: rank {slowest['rank']}", flush=True)


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    Worker().run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
