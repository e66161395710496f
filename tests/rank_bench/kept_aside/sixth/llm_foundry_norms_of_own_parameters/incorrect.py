"""Sums up the norms of the moments over ranks, one for each parameter whose state the rank has.

source: https://github.com/mosaicml/llm-foundry/issues/578
bug: RS406
ranks: 2
expect: RS406
line: for metric in sorted(optimizer_metrics):
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


class Logger:
    def __init__(self):
        self.history = []

    def log_metrics(self, metrics, step):
        self.history.append((step, metrics))


class OptimizerMonitor:
    """Logs the norm of the second moment of every parameter."""

    def __init__(self, interval=2):
        self.interval = interval

    def batch_end(self, state, logger):
        if state.batch % self.interval == 0:
            metrics = self.reduce_metrics(state, self.local_metrics(state))
            logger.log_metrics(metrics, state.batch)

    def local_metrics(self, state):
        """Squared norms by name; of a parameter on another rank there is no state here."""
        optimizer_metrics = {}
        for name, parameter in state.model.module.named_parameters():
            moments = state.optimizer.optim.state.get(parameter)
            if moments:
                squared = moments["exp_avg_sq"].pow(2).sum()
                optimizer_metrics[f"l2_norm/second_moment/{name}"] = squared
        return optimizer_metrics

    def reduce_metrics(self, state, optimizer_metrics):
        reduced = {}
        for metric in sorted(optimizer_metrics):
            squared = optimizer_metrics[metric].clone()
            dist.all_reduce(squared)
            reduced[metric] = squared.sqrt().item()
        return reduced


class State:
    def __init__(self, model):
        self.model = DistributedDataParallel(model)
        self.optimizer = ZeroRedundancyOptimizer(
            self.model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3
        )
        self.batch = 0


def fit(state, callbacks, logger, batches=4):
    for _ in range(batches):
        loss = state.model(torch.randn(8, 12)).pow(2).mean()
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
        state.batch += 1
        for callback in callbacks:
            callback.batch_end(state, logger)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(dist.get_rank())
    model = nn.Sequential(
        nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 6), nn.ReLU(), nn.Linear(6, 1)
    )
    logger = Logger()
    fit(State(model), [OptimizerMonitor()], logger)
    if dist.get_rank() == 0:
        for name, norm in logger.history[-1][1].items():
            print(f"{name} {norm:.3g}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
