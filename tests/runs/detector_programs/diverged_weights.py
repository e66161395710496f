"""The module inside DDP is called past it; or nothing wraps the model; or all is well."""

import sys

import torch
import torch.distributed as dist
from torch import nn

kind = sys.argv[1]
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
if kind != "unwrapped":
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for _ in range(3):
    inputs, labels = torch.randn(8, 4), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    if kind == "bypass":
        outputs = model.module(inputs)  # drawn here
    else:
        outputs = model(inputs)
    loss = nn.functional.cross_entropy(outputs, labels)
    loss.backward()
    if kind == "by-hand":
        for parameter in model.parameters():
            parameter.grad /= 1 + dist.get_rank()
    optimizer.step()  # stepped here
dist.all_reduce(loss)
dist.destroy_process_group()
