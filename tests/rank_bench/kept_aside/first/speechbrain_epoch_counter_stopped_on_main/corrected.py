"""Early stopping sets the epoch counter to its end on all processes, from a reduced loss.

source: https://github.com/speechbrain/speechbrain/issues/1939
bug: RS401
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class EpochCounterWithStopper:
    def __init__(self, limit, limit_to_stop):
        self.current, self.limit, self.limit_to_stop = 0, limit, limit_to_stop
        self.best, self.best_epoch = float("inf"), 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.current < self.limit:
            self.current += 1
            return self.current
        raise StopIteration

    def should_stop(self, current, current_metric):
        if current_metric < self.best:
            self.best, self.best_epoch = current_metric, current
        return current - self.best_epoch >= self.limit_to_stop


class Brain:
    def __init__(self, module):
        self.modules = DDP(module)
        self.epoch_counter = EpochCounterWithStopper(limit=6, limit_to_stop=2)

    def _fit_train(self, epoch):
        loss = self.modules(torch.randn(4, 4)).pow(2).mean()
        loss.backward()
        self.modules.zero_grad()

    def _fit_valid(self, epoch):
        with torch.no_grad():
            valid_loss = self.modules.module(torch.ones(4, 4)).pow(2).mean()
        dist.all_reduce(valid_loss)
        self.on_stage_end(valid_loss.item(), epoch)

    def on_stage_end(self, stage_loss, epoch):
        if self.epoch_counter.should_stop(epoch, stage_loss):
            self.epoch_counter.current = self.epoch_counter.limit

    def fit(self):
        for epoch in self.epoch_counter:
            self._fit_train(epoch)
            self._fit_valid(epoch)


if __name__ == "__main__":
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    Brain(torch.nn.Linear(4, 1)).fit()
    print(dist.get_rank(), "training ended")
    dist.barrier()
    dist.destroy_process_group()
