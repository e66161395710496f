"""Rank 1 waits for a lock that nobody gives back; rank 0 is in a backward pass, which waits for it in C++."""

import threading

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

lock = threading.Lock()
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    if dist.get_rank() == 1 and step >= 3:
        lock.acquire()
    optimizer.zero_grad()
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
