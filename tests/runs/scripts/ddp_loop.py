"""A plain training loop under DistributedDataParallel that would go on for ever."""

import itertools
import pathlib
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in itertools.count(1):
    optimizer.zero_grad()
    model(torch.randn(2, 4)).sum().backward()
    print("step", step, flush=True)
    optimizer.step()
pathlib.Path(sys.argv[1]).write_text("never")
