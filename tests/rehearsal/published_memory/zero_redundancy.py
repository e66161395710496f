"""Twenty linear layers in DDP over gloo (or nccl), one step of Adam; ``--shard``: its states are spread over the ranks."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl" if "--nccl" in sys.argv else "gloo")
rank = int(os.environ["LOCAL_RANK"])
layers = nn.Sequential(*(nn.Linear(2000, 2000).to(rank) for _ in range(20)))
model = DistributedDataParallel(layers, device_ids=[rank])
# Adam of torch 1.8, with which it was measured, went from parameter to parameter.
how = {"lr": 0.01, "foreach": False}
if "--shard" in sys.argv:
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, **how)
else:
    optimizer = torch.optim.Adam(model.parameters(), **how)
outputs = model(torch.randn(20, 2000).to(rank))
targets = torch.randn(20, 2000).to(rank)
nn.functional.mse_loss(outputs, targets).backward()
optimizer.step()
dist.destroy_process_group()
