"""Rank 1 leaves with an exit status and no traceback; rank 0 waits for it in a collective.

fault: sys.exit
outcome: failed
rank: 1
kind: exit-status
line: sys.exit(3)
"""

import sys

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        sys.exit(3)
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
