"""Rank 0 prepares for longer than any watch waits, asleep in between, while rank 1 waits for it. Nothing has failed.

fault: slow preparation on rank 0
outcome: succeeded
rank: none
kind: none
line: none
"""

import time

import torch
import torch.distributed as dist


def prepare():
    for _ in range(60):
        time.sleep(0.4)
        torch.ones(512, 512) @ torch.ones(512, 512)


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        prepare()
    dist.barrier()
    print("trained", flush=True)


if __name__ == "__main__":
    main()
