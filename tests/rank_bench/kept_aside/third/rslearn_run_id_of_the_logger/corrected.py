"""A callback writes down the id of the run on the first rank, where it exists.

source: https://github.com/allenai/rslearn_projects/pull/37
bug: RS409
ranks: 2
expect: clean
shows: fine
"""

import functools
import os
import uuid
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def rank_zero_only(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        if dist.get_rank() == 0:
            return function(*args, **kwargs)
        return None

    return wrapped


class Run:
    def __init__(self, project):
        self.project = project
        self.id = uuid.uuid4().hex[:8]


class LoggingBackend:
    run = None

    @rank_zero_only
    def init(self, project):
        self.run = Run(project)


logging_backend = LoggingBackend()


class SaveRunIdCallback:
    """Remembers the run, so that a restarted job can log to it again."""

    def __init__(self):
        self.saved = None

    @rank_zero_only
    def on_fit_start(self, trainer):
        run_id = logging_backend.run.id
        self.saved = f"{trainer.project}/{run_id}"


class Trainer:
    def __init__(self, project, callbacks):
        self.project, self.callbacks = project, callbacks

    def fit(self, module, batches):
        logging_backend.init(self.project)
        for callback in self.callbacks:
            callback.on_fit_start(self)
        model = DistributedDataParallel(module)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch in batches:
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    callback = SaveRunIdCallback()
    Trainer("landslides", [callback]).fit(nn.Linear(3, 1), torch.randn(4, 2, 3))
    print(dist.get_rank(), callback.saved is not None, flush=True)
    dist.destroy_process_group()
