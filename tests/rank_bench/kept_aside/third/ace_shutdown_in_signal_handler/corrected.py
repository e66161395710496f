"""A handler of the termination signal remembers it, and the ranks agree on it after each batch.

source: https://github.com/ai2cm/ace/pull/1398
bug: RS414
ranks: 2
expect: clean
shows: fine
"""

import os
import signal
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, module, folder):
        self.model = DistributedDataParallel(module)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.folder = folder
        self.terminated = False
        signal.signal(signal.SIGTERM, self.on_terminate)

    def save_restart_checkpoint(self):
        if dist.get_rank() == 0:
            torch.save(self.model.module.state_dict(), self.folder / "restart.ckpt")

    def on_terminate(self, signum, frame):
        self.terminated = True

    def train_epoch(self, batches):
        for number, batch in enumerate(batches):
            loss = (self.model(batch) - batch).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if number == 2 and dist.get_rank() == 1:
                # the scheduler preempts the node of the second rank
                os.kill(os.getpid(), signal.SIGTERM)
            terminated = torch.tensor([int(self.terminated)])
            dist.all_reduce(terminated)
            if terminated.item():
                self.save_restart_checkpoint()
                return


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(dist.get_rank())
    trainer = Trainer(nn.Linear(12, 12), Path(tempfile.mkdtemp()))
    trainer.train_epoch(torch.randn(8, 4, 12))
    print(f"rank {dist.get_rank()}: finished, terminated={trainer.terminated}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
