"""Rank 1 falls silent as a whole: its process is stopped, or compiled code waits and keeps Python's lock."""

import ctypes
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for step in range(20):
    time.sleep(0.5)
    if dist.get_rank() == 1 and step == 5:
        if sys.argv[1] == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            ctypes.PyDLL(None).pause()
    dist.all_reduce(torch.ones(4))
