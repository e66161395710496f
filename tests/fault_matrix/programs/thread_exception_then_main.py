"""A thread of rank 1 dies of an exception; the main thread starves and fails of that.

fault: thread exception, main thread fails of it
outcome: failed
rank: 1
kind: exception
line: raise KeyError("shard-1")
"""

import queue
import threading

import torch
import torch.distributed as dist


def fetch_all(batches):
    batches.put(torch.ones(4))
    raise KeyError("shard-1")


def main():
    dist.init_process_group("gloo")
    batches = queue.Queue()
    if dist.get_rank() == 1:
        threading.Thread(target=fetch_all, args=(batches,), daemon=True).start()
    for _ in range(3):
        batch = batches.get(timeout=4) if dist.get_rank() == 1 else torch.ones(4)
        dist.all_reduce(batch)


if __name__ == "__main__":
    main()
