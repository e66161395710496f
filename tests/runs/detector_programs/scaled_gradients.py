"""Gradients that DDP has averaged are summed once more by hand; or averaged, which changes nothing."""

import sys

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for _ in range(3):
    optimizer.zero_grad()
    if sys.argv[1] == "no-sync":
        with model.no_sync():
            model(torch.randn(8, 4)).square().mean().backward()
    else:
        model(torch.randn(8, 4)).square().mean().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)  # drawn here
        if sys.argv[1] != "wrong":
            parameter.grad /= dist.get_world_size()
    optimizer.step()
dist.destroy_process_group()
