"""The host of rank 1 loses its power while the rank works; rank 0, on another host, waits for it in a collective.

fault: one host down
hosts: 2
outcome: failed
rank: 1
kind: node-failure
line: time.sleep(0.05)  # the work
waits: dist.all_reduce(
"""

import os
import threading
import time

import torch
import torch.distributed as dist


def work():
    while True:
        time.sleep(0.05)  # the work


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        node = os.environ["SLURMD_NODENAME"]
        threading.Timer(3.0, print, [f"take away {node}"], {"flush": True}).start()
        work()
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
