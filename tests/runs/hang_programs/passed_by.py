"""Rank 1 begins a broadcast, which it does not wait for, where rank 0 reduces; then it computes."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
value = torch.ones(4)
dist.all_reduce(value)
if dist.get_rank() == 0:
    dist.all_reduce(value)
else:
    dist.broadcast(value, src=1, async_op=True)
    while True:
        sum(range(100_000))
