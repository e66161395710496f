"""An optimizer that was made before FSDP replaced the parameters, or after it."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
if sys.argv[1] == "wrong":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # drawn here
    fully_shard(model)
else:
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
