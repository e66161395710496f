"""Rank 1 stands still at a lock that nobody gives free; rank 0 waits for it in a collective.

fault: hang, one rank stands still
outcome: failed
rank: 1
kind: hang
line: LOCK.acquire()
waits: dist.all_reduce(torch.ones(4))
"""

import threading

import torch
import torch.distributed as dist

LOCK = threading.Lock()


def enter():
    LOCK.acquire()


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        enter()
        enter()
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
