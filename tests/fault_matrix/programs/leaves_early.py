"""Rank 1 finishes, in all innocence, while rank 0 still waits for it.

fault: rank leaves early
outcome: failed
rank: 1
kind: rank-left-early
line: dist.all_reduce(torch.ones(4))
"""

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    steps = 3 if dist.get_rank() == 0 else 2
    for _ in range(steps):
        dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
