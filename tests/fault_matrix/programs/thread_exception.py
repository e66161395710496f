"""A thread of rank 1 dies of an exception; the main thread notices and leaves without saying why.

fault: thread exception
outcome: failed
rank: 1
kind: exception
line: return INDEX[f"shard-{number}"]
"""

import sys
import threading

import torch
import torch.distributed as dist

INDEX = {"shard-0": 0}


def shard(number):
    return INDEX[f"shard-{number}"]


def fetch_all():
    for number in range(3):
        shard(number)


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        reader = threading.Thread(target=fetch_all, name="reader")
        reader.start()
        reader.join()
        sys.exit(1)
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
