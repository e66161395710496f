"""Rank 1 waits while rank 0 trains, or both train."""

import sys

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
if dist.get_rank() == 0 or sys.argv[1] == "right":
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
dist.barrier()  # waits here
dist.destroy_process_group()
