"""The head has no part in the loss: torch tells its parameters by index, and leaves the frozen ones out."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.body = nn.Linear(2, 2)
        self.head = nn.Linear(2, 2)

    def forward(self, batch):
        return self.body(self.frozen(batch))


dist.init_process_group("gloo")
other = DistributedDataParallel(nn.Linear(2, 2))
model = DistributedDataParallel(Model())
for _ in range(2):
    model(torch.ones(1, 2)).sum().backward()
