"""Reduces each gradient to the rank that owns it; each rank counts its own buffers alone when it assigns them.

source: https://github.com/pytorch/pytorch/issues/39706
bug: RS415
ranks: 2
expect: RS415
line: dist.reduce(parameter.grad, dst=self.owner[name])
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class OwnedOptimizer:
    """Every parameter is updated by one rank, which then broadcasts it."""

    def __init__(self, module, lr=0.05):
        self.module = module
        self.lr = lr
        self.owner = self._assign(dict(module.named_parameters()))

    def _assign(self, parameters):
        """Give each parameter, the largest first, to the rank with the smallest load."""
        load = [0] * dist.get_world_size()
        load[dist.get_rank()] = sum(b.numel() for b in self.module.buffers()) + 1
        owner = {}
        for name in sorted(parameters, key=lambda n: -parameters[n].numel()):
            chosen = load.index(min(load))
            owner[name] = chosen
            load[chosen] += parameters[name].numel()
        return owner

    @torch.no_grad()
    def step(self):
        for name, parameter in self.module.named_parameters():
            dist.reduce(parameter.grad, dst=self.owner[name])
        for name, parameter in self.module.named_parameters():
            if self.owner[name] == dist.get_rank():
                parameter.sub_(self.lr * parameter.grad / dist.get_world_size())
        for name, parameter in self.module.named_parameters():
            dist.broadcast(parameter, src=self.owner[name])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(5, 12)
        self.norm = nn.BatchNorm1d(12)
        self.head = nn.Linear(12, 1)

    def forward(self, inputs):
        return self.head(torch.relu(self.norm(self.encoder(inputs))))


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    net = Net()
    optimizer = OwnedOptimizer(net)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(5):
        inputs = torch.randn(16, 5, generator=generator)
        loss = (net(inputs) - inputs[:, :1]).pow(2).mean()
        net.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
