"""A module that accumulates a buffer from each rank's own batch, with and without a reduction."""

import sys

import torch
import torch.distributed as dist
from torch import nn


class Centered(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.normalise = nn.BatchNorm1d(4)
        self.register_buffer("center", torch.zeros(4))
        self.register_buffer("latest", torch.zeros(4))

    def forward(self, inputs):  # drawn here
        mean = inputs.mean(dim=0)
        self.latest = mean
        if sys.argv[1] == "right":
            dist.all_reduce(mean)
            mean = mean / dist.get_world_size()
        self.center.mul_(0.9).add_(mean, alpha=0.1)
        return self.linear(self.normalise(inputs) - self.center)


dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(Centered())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
