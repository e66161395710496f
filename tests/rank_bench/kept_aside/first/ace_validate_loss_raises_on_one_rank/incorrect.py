"""Raises at a NaN loss on the rank that sees it, while the others go on into backward.

source: https://github.com/ai2cm/ace/pull/850
bug: RS401
ranks: 2
expect: RS401
line: loss.backward()
decidable: no: an exception that only some ranks raise is how programs report bad data; the launcher decides
shows: error Loss is NaN
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Optimization:
    def __init__(self, parameters):
        self.optimizer = torch.optim.Adam(parameters, lr=1e-3)

    def step_weights(self, loss):
        self._validate_loss(loss)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def _validate_loss(self, loss):
        with torch.no_grad():
            if torch.isnan(loss):
                raise ValueError("Loss is NaN-valued during training.")


def train_one_epoch(model, optimization, inputs, targets):
    for x, y in zip(inputs, targets):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimization.step_weights(loss)


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    inputs, targets = torch.randn(12, 4, 6), torch.randn(12, 4, 1)
    targets[7] = float("nan")
    model = DistributedDataParallel(torch.nn.Linear(6, 1))
    optimization = Optimization(model.parameters())
    train_one_epoch(model, optimization, inputs[rank::world_size], targets[rank::world_size])
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
