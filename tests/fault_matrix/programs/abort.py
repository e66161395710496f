"""Rank 0 aborts in native code, as glibc does when it finds the heap damaged; rank 1 waits for it.

fault: abort
outcome: failed
rank: 0
kind: fatal-signal
line: ctypes.CDLL(None).abort()
"""

import ctypes

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 0:
        ctypes.CDLL(None).abort()
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
