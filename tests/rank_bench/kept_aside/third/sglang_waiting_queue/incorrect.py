"""Walks the waiting queue until the rank's batch is full, asking all ranks for the progress of each request.

source: https://github.com/sgl-project/sglang/pull/33029
bug: RS404
ranks: 2
expect: RS404
line: break
decidable: yes
shows: hang
"""

import os
from collections import deque
from datetime import timedelta

import torch
import torch.distributed as dist


class KVCachePool:
    def __init__(self, size):
        self.size = size
        self.used = 0

    def available_size(self):
        return self.size - self.used


class HiRadixCache:
    def __init__(self):
        self.loaded = {}

    def check_prefetch_progress(self, request):
        done = torch.tensor([self.loaded.get(request, 0)])
        dist.all_reduce(done, op=dist.ReduceOp.MIN)
        return done.item() >= 2


class Scheduler:
    def __init__(self, pool):
        self.pool = pool
        self.cache = HiRadixCache()
        self.requests = [(f"req{n}", 10 + n) for n in range(14)]
        self.waiting_queue = deque(self.requests)

    def get_new_batch(self):
        batch = []
        for request, tokens in list(self.waiting_queue):
            if self.pool.available_size() < tokens:
                break
            if not self.cache.check_prefetch_progress(request):
                continue
            self.pool.used += tokens
            self.waiting_queue.remove((request, tokens))
            batch.append(request)
        return batch

    def event_loop(self, ticks):
        for _ in range(ticks):
            for request, _ in self.waiting_queue:
                self.cache.loaded[request] = self.cache.loaded.get(request, 0) + 1
            batch = self.get_new_batch()
            print(f"rank {dist.get_rank()}: {batch}", flush=True)
            self.pool.used = 0


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    # The first rank's memory also holds the output head.
    size = 36 if dist.get_rank() == 0 else 52
    Scheduler(KVCachePool(size)).event_loop(ticks=5)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
