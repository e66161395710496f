"""Rank 1 raises an exception of its own; rank 0 waits for it in a collective.

fault: exception
outcome: failed
rank: 1
kind: exception
line: raise ValueError("this rank cannot go on")
"""

import torch
import torch.distributed as dist


def check(rank):
    if rank == 1:
        raise ValueError("this rank cannot go on")


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    check(dist.get_rank())
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
