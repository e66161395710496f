"""Rank 1 ends at once, past every handler, and leaves a process of its own behind.

fault: os._exit
outcome: failed
rank: 1
kind: exit-status
line: os._exit(7)
"""

import os
import subprocess
import sys

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        helper = [sys.executable, "-c", "import time; time.sleep(600)"]
        subprocess.Popen(helper, start_new_session=True)
        os._exit(7)
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
