"""Returns at once for a request that this rank does not prefetch; the ranks that do ask all whether they may stop.

source: https://github.com/sgl-project/sglang/pull/38273
bug: RS401
ranks: 2
expect: RS401
line: if not self.can_terminate_prefetch(operation):
decidable: yes
shows: hang
"""

import os
from collections import deque
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist


@dataclass
class PrefetchOperation:
    req_id: str
    pages: int
    completed: int = 0

    def poll(self):
        self.completed = min(self.completed + 2, self.pages)
        return self.completed == self.pages


class HiRadixCache:
    """Loads the pages of a prefix from the storage of this rank before a request runs."""

    def __init__(self, tp_group, storage, prefetch_threshold=2):
        self.tp_group = tp_group
        self.tp_world_size = dist.get_world_size(tp_group)
        self.storage = storage
        self.prefetch_threshold = prefetch_threshold
        self.ongoing_prefetch = {}

    def prefetch_from_storage(self, req_id):
        hit = self.storage.get(req_id, 0)
        if hit < self.prefetch_threshold:
            return
        self.ongoing_prefetch[req_id] = PrefetchOperation(req_id, hit)

    def can_terminate_prefetch(self, operation):
        can_terminate = operation is None or operation.poll()
        states = torch.tensor([1 - int(can_terminate)], dtype=torch.int)
        if self.tp_world_size > 1:
            dist.all_reduce(states, op=dist.ReduceOp.MAX, group=self.tp_group)
        return states[0].item() == 0

    def check_prefetch_progress(self, req_id):
        if req_id not in self.ongoing_prefetch:
            # nothing is under way for it
            return True
        operation = self.ongoing_prefetch[req_id]
        if not self.can_terminate_prefetch(operation):
            return False
        del self.ongoing_prefetch[req_id]
        return True


class Scheduler:
    def __init__(self, tree_cache):
        self.tree_cache = tree_cache
        self.waiting_queue = deque()

    def add_request(self, req_id):
        self.tree_cache.prefetch_from_storage(req_id)
        self.waiting_queue.append(req_id)

    def event_loop(self):
        while self.waiting_queue:
            req_id = self.waiting_queue.popleft()
            if not self.tree_cache.check_prefetch_progress(req_id):
                self.waiting_queue.append(req_id)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    # the storage of the second rank has evicted a prefix
    storage = {"a": 4, "b": 6, "c": 3} if dist.get_rank() == 0 else {"a": 4, "c": 3}
    scheduler = Scheduler(HiRadixCache(dist.group.WORLD, storage))
    for req_id in ("a", "b", "c"):
        scheduler.add_request(req_id)
    scheduler.event_loop()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
