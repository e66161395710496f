"""Makes the group of the ranks that log when it is needed first, which is so on those ranks alone.

source: documented: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.new_group, 2.13
bug: RS412
ranks: 3
expect: RS412
line: self._group = dist.new_group(self.writers)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class MetricLog:
    """Merges what the writing ranks have measured, every few steps."""

    def __init__(self, writers, every=2):
        self.writers = writers
        self.every = every
        self.is_writer = dist.get_rank() in writers
        self._group = None
        self._values = []

    @property
    def group(self):
        return self._group

    def open(self):
        self._group = dist.new_group(self.writers)

    def add(self, loss):
        self._values.append(loss.detach())
        if len(self._values) == self.every:
            self.flush()

    def flush(self):
        mean = torch.stack(self._values).mean()
        self._values.clear()
        if not self.is_writer:
            return
        if self._group is None:
            self.open()
        dist.all_reduce(mean, group=self.group)
        if dist.get_rank() == self.writers[0]:
            print(f"loss {mean.item() / len(self.writers):.4f}", flush=True)


class Regression(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.hidden = nn.Linear(features, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x, y):
        return nn.functional.huber_loss(self.out(torch.tanh(self.hidden(x))), y)


def run(steps=6, features=5):
    log = MetricLog(writers=[0, 1])
    model = DistributedDataParallel(Regression(features))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for _ in range(steps):
        x = torch.randn(8, features)
        loss = model(x, x.prod(dim=1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.add(loss)
    return loss.detach()


def compare(loss):
    """The last loss of every rank, over a group of its own so that it may run beside training."""
    side_group = dist.new_group()
    losses = [torch.zeros(()) for _ in range(dist.get_world_size())]
    dist.all_gather(losses, loss, group=side_group)
    if dist.get_rank() == 0:
        print(f"between {min(losses).item():.4f} and {max(losses).item():.4f}", flush=True)


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(dist.get_rank())
    compare(run())
    dist.destroy_process_group()
