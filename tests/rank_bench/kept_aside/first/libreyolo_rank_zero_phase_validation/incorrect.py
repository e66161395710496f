"""A rank-zero phase runs a validation that forwards through the live DDP model.

source: https://github.com/LibreYOLO/libreyolo/pull/594
bug: RS403
ranks: 2
expect: RS403
line: value = phase()
decidable: yes
shows: error Connection (closed|reset) by peer|doesn.t match expected size|Timed out waiting
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def is_main_process():
    return dist.get_rank() == 0


def run_rank_zero_phase(name, phase):
    """Runs a phase on rank zero; the others wait for its result."""
    payload = [None]
    if is_main_process():
        value = phase()
        payload = [(name, value)]
    dist.broadcast_object_list(payload, src=0)
    return payload[0][1]


class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 2))
        self.model = DistributedDataParallel(net)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        self.val_batches = [torch.randn(4, 6) for _ in range(3)]

    def _train_epoch(self):
        self.model.train()
        for _ in range(4):
            loss = self.model(torch.randn(8, 6)).pow(2).mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()

    def _run_validation(self):
        net = self.model
        net.eval()
        with torch.no_grad():
            return sum(net(x).pow(2).mean().item() for x in self.val_batches)

    def train(self, epochs=2):
        for epoch in range(epochs):
            self._train_epoch()
            metric = run_rank_zero_phase(f"validation epoch {epoch + 1}", self._run_validation)
            print(f"rank {dist.get_rank()} epoch {epoch}: {metric:.3f}")


if __name__ == "__main__":
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    Trainer().train()
    dist.destroy_process_group()
