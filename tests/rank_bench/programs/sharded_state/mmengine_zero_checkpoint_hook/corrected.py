"""A checkpoint hook saves a ZeroRedundancyOptimizer; all processes gather its state, the master writes the file.

source: https://github.com/open-mmlab/mmengine/pull/551
bug: RS402
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import functools
import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def master_only(func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        if dist.get_rank() == 0:
            return func(*args, **kwargs)

    return wrapper


@master_only
def save_checkpoint(checkpoint, filename):
    torch.save(checkpoint, filename)


class Runner:
    def __init__(self, work_dir):
        self.work_dir = work_dir
        self.iter = 0
        self.model = DDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
        self.optimizer = ZeroRedundancyOptimizer(self.model.parameters(), torch.optim.Adam, lr=1e-3)

    def save_checkpoint(self, filename):
        checkpoint = {"iter": self.iter, "state_dict": self.model.module.state_dict()}
        self.optimizer.consolidate_state_dict(to=0)
        if dist.get_rank() == 0:
            checkpoint["optimizer"] = self.optimizer.state_dict()
        save_checkpoint(checkpoint, os.path.join(self.work_dir, filename))

    def train(self, hook, max_iters=4):
        while self.iter < max_iters:
            loss = self.model(torch.randn(16, 8)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.iter += 1
            hook.after_train_iter(self)


class CheckpointHook:
    interval = 2

    def after_train_iter(self, runner):
        if runner.iter % self.interval == 0:
            self._save_checkpoint(runner)

    def _save_checkpoint(self, runner):
        runner.save_checkpoint(f"iter_{runner.iter}.pth")


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    with tempfile.TemporaryDirectory() as folder:
        Runner(folder).train(CheckpointHook())
    dist.destroy_process_group()
