"""Ranks that call other collectives than their peers: in another order, fewer, or all alike."""

import sys
from datetime import timedelta

import torch
import torch.distributed as dist

kind = sys.argv[1]
dist.init_process_group("gloo", timeout=timedelta(seconds=5))
value = torch.ones(4)
dist.all_reduce(value)
if kind == "order" and dist.get_rank() == 1:
    dist.broadcast(value, src=1)  # the other
    dist.all_reduce(value)
elif kind == "order":
    dist.all_reduce(value)  # the one
    dist.broadcast(value, src=1)
elif kind == "count" and dist.get_rank() == 0:
    dist.broadcast(value, src=0)  # nobody listens
gathered = [None, None]
if kind == "right":
    dist.all_gather_object(gathered, {"rank": dist.get_rank()})
    dist.barrier()
    dist.destroy_process_group()
