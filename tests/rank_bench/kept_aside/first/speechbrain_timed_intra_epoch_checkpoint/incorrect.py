"""Decides by its own clock on each rank whether to enter a save with a barrier in it.

source: https://github.com/speechbrain/speechbrain/issues/1166
bug: RS401
ranks: 2
expect: RS401
line: run_on_main(self._save_intra_epoch_ckpt)
decidable: yes
shows: hang
"""

import os
import random
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def if_main_process():
    return int(os.environ["RANK"]) == 0


def run_on_main(func, args=()):
    """Runs a function on the main process while the others wait."""
    if if_main_process():
        func(*args)
    dist.barrier()


class Brain:
    def __init__(self, module, ckpt_interval_seconds):
        self.modules = DDP(module)
        self.optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
        self.ckpt_interval_seconds = ckpt_interval_seconds

    def fit_batch(self, batch):
        loss = self.modules(batch).pow(2).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        time.sleep(random.uniform(0.002, 0.02))

    def fit(self, num_batches):
        last_ckpt_time = time.time()
        for _ in range(num_batches):
            self.fit_batch(torch.randn(4, 8))
            if time.time() - last_ckpt_time >= self.ckpt_interval_seconds:
                run_on_main(self._save_intra_epoch_ckpt)
                last_ckpt_time = time.time()

    def _save_intra_epoch_ckpt(self):
        path = os.path.join(tempfile.gettempdir(), "intra_epoch.ckpt")
        torch.save(self.modules.module.state_dict(), path)


if __name__ == "__main__":
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    random.seed()
    Brain(torch.nn.Linear(8, 2), ckpt_interval_seconds=0.1).fit(300)
    dist.barrier()
    dist.destroy_process_group()
