"""A rank that never started to prefetch a request answers at once, while the others agree on the progress.

source: https://github.com/sgl-project/sglang/pull/38284
bug: RS401
ranks: 2
expect: RS401
line: dist.all_reduce(progress, op=dist.ReduceOp.MAX, group=self.tp_group)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


class HostPool:
    def __init__(self, pages):
        self.free_pages = pages

    def alloc(self, pages):
        if pages > self.free_pages:
            return False
        self.free_pages -= pages
        return True


class RadixCache:
    def __init__(self, tp_group, pages):
        self.tp_group = tp_group
        self.pool = HostPool(pages)
        self.ongoing_prefetch = {}

    def prefetch_from_storage(self, req_id, num_pages):
        if self.pool.alloc(num_pages):
            self.ongoing_prefetch[req_id] = num_pages

    def step(self):
        for req_id, pages in self.ongoing_prefetch.items():
            self.ongoing_prefetch[req_id] = max(0, pages - 4)

    def check_prefetch_progress(self, req_id):
        """Whether the request can be scheduled: nobody is still loading pages for it."""
        if req_id not in self.ongoing_prefetch:
            return True
        progress = torch.tensor([self.ongoing_prefetch[req_id]])
        dist.all_reduce(progress, op=dist.ReduceOp.MAX, group=self.tp_group)
        if progress.item() > 0:
            return False
        del self.ongoing_prefetch[req_id]
        return True


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    rank = dist.get_rank()
    # The first rank also keeps the tokenizer's buffers in host memory.
    cache = RadixCache(dist.group.WORLD, pages=16 if rank == 0 else 24)
    waiting = {"req-0": 8, "req-1": 6, "req-2": 7}
    for req_id, pages in waiting.items():
        cache.prefetch_from_storage(req_id, pages)
    while waiting:
        cache.step()
        for req_id in list(waiting):
            if cache.check_prefetch_progress(req_id):
                waiting.pop(req_id)
                print(f"rank {rank}: runs {req_id}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
