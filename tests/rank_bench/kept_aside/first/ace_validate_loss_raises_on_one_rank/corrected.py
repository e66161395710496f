"""Raises at a NaN loss on no rank alone: the ranks agree, skip the batch and go on.

source: https://github.com/ai2cm/ace/pull/850
bug: RS401
ranks: 2
expect: clean
decidable: no: an exception that only some ranks raise is how programs report bad data; the launcher decides
shows: fine
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
        if not self._validate_loss(loss):
            return
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def _validate_loss(self, loss):
        with torch.no_grad():
            is_nan = torch.isnan(loss).int()
            dist.all_reduce(is_nan, op=dist.ReduceOp.MAX)
            if is_nan and dist.get_rank() == 0:
                print("Loss is NaN-valued on some rank: batch skipped")
            return not is_nan


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
