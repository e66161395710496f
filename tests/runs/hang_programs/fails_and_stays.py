"""Rank 1 fails, but a thread of its own keeps it from ending, so that no launcher sees it."""

import threading
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    threading.Thread(target=time.sleep, args=(600,)).start()
    raise ValueError("this rank cannot go on")
dist.all_reduce(torch.ones(4))
