"""The master asks a checkpointer to save, whose engine has a barrier for all the workers.

source: https://github.com/allenai/allennlp/pull/4693
bug: RS401
ranks: 2
expect: RS401
line: self._checkpointer.save_checkpoint(epoch, self)
decidable: yes
shows: hang
"""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist


class Engine:
    """Stands for an engine that saves a part on each rank."""

    def __init__(self, module):
        self.module = module

    def save_checkpoint(self, save_dir, tag):
        path = os.path.join(save_dir, f"{tag}_rank_{dist.get_rank()}.pt")
        torch.save(self.module.state_dict(), path)
        dist.barrier()


class Checkpointer:
    def __init__(self, serialization_dir):
        self._serialization_dir = serialization_dir

    def call_on_rank(self, rank):
        return rank == 0


class EngineCheckpointer(Checkpointer):
    def save_checkpoint(self, epoch, trainer):
        trainer.engine.save_checkpoint(self._serialization_dir, f"epoch_{epoch}")


class Trainer:
    def __init__(self, model, checkpointer, num_epochs=3):
        self.engine = Engine(model)
        self._checkpointer = checkpointer
        self._rank = dist.get_rank()
        self._master = self._rank == 0
        self._num_epochs = num_epochs

    def _train_epoch(self):
        self.engine.module(torch.randn(4, 8)).mean().backward()
        for p in self.engine.module.parameters():
            dist.all_reduce(p.grad)
            p.data.add_(p.grad, alpha=-0.01)
            p.grad = None

    def train(self):
        for epoch in range(self._num_epochs):
            self._train_epoch()
            if self._master and self._checkpointer is not None:
                self._checkpointer.save_checkpoint(epoch, self)


if __name__ == "__main__":
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    Trainer(torch.nn.Linear(8, 1), EngineCheckpointer(tempfile.gettempdir())).train()
    dist.destroy_process_group()
