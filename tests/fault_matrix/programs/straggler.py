"""Rank 1 is slow, for one step very slow; everything goes on. Nothing has failed, and nothing may be said to.

fault: straggler
outcome: succeeded
rank: none
kind: none
line: none
"""

import time

import torch
import torch.distributed as dist


def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        torch.ones(64, 64) @ torch.ones(64, 64)


def main():
    dist.init_process_group("gloo")
    for step in range(12):
        if dist.get_rank() == 1:
            compute(9.0 if step == 6 else 0.3)
        dist.all_reduce(torch.ones(4))
    print("trained", flush=True)


if __name__ == "__main__":
    main()
