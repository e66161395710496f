"""Raises an exception after the batch during which this process received SIGTERM, which ends its training.

source: https://github.com/Lightning-AI/pytorch-lightning/pull/20825
bug: RS410
ranks: 2
expect: RS410
line: except SIGTERMException:
decidable: yes
shows: hang
"""

import os
import signal
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class SIGTERMException(SystemExit):
    """Raised when a process is asked to end."""


class SignalConnector:
    def __init__(self):
        self.received_sigterm = False

    def register_signal_handlers(self):
        signal.signal(signal.SIGTERM, self._sigterm_notifier_fn)

    def _sigterm_notifier_fn(self, signum, frame):
        self.received_sigterm = True


class TrainingEpochLoop:
    def __init__(self, trainer, batches):
        self.trainer = trainer
        self.batches = batches

    def advance(self, x, y):
        trainer = self.trainer
        trainer.optimizer.zero_grad()
        nn.functional.mse_loss(trainer.model(x), y).backward()
        trainer.optimizer.step()

    def on_advance_end(self):
        if self.trainer.signal_connector.received_sigterm:
            raise SIGTERMException

    def run(self):
        for step, (x, y) in enumerate(self.batches):
            if step == 3 and dist.get_rank() == 0:
                os.kill(os.getpid(), signal.SIGTERM)  # the node of rank 0 is needed elsewhere
            self.advance(x, y)
            self.on_advance_end()


class Trainer:
    def __init__(self, model):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.signal_connector = SignalConnector()
        self.interrupted = False

    def fit(self, batches):
        self.signal_connector.register_signal_handlers()
        try:
            TrainingEpochLoop(self, batches).run()
        except SIGTERMException:
            self.interrupted = True
        print(f"rank {dist.get_rank()}: interrupted {self.interrupted}", flush=True)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    generator = torch.Generator().manual_seed(dist.get_rank())
    inputs = torch.randn(8, 4, 3, generator=generator)
    Trainer(nn.Linear(3, 1)).fit([(x, x.mean(dim=1, keepdim=True)) for x in inputs])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
