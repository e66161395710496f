"""Rank 1 crashes in native code; rank 0 waits for it in a collective.

fault: SIGSEGV
outcome: failed
rank: 1
kind: fatal-signal
line: return ctypes.string_at(0)
"""

import ctypes

import torch
import torch.distributed as dist


def read_freed_memory():
    return ctypes.string_at(0)


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        read_freed_memory()
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
