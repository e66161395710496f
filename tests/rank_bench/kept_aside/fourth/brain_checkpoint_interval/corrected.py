"""The main process looks at its clock and tells all whether to save a checkpoint.

source: https://github.com/speechbrain/speechbrain/issues/2401
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def if_main_process():
    return int(os.environ["RANK"]) == 0


def ddp_barrier():
    dist.barrier()


class Brain:
    def __init__(self, modules, hparams):
        self.modules = DistributedDataParallel(modules)
        self.hparams = hparams
        self.optimizer = torch.optim.SGD(self.modules.parameters(), lr=hparams["lr"])
        self.ckpt_interval_seconds = hparams["ckpt_interval_seconds"]

    def make_dataloader(self, dataset):
        time.sleep(0.4 * dist.get_rank())  # the second manifest lies on a slower disk
        return dataset

    def fit_batch(self, batch):
        wavs, labels = batch
        loss = nn.functional.binary_cross_entropy_with_logits(self.modules(wavs), labels)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def _save_intra_epoch_ckpt(self):
        if if_main_process():
            torch.save(self.modules.module.state_dict(), self.hparams["save_file"])
        ddp_barrier()

    def _fit_train(self, train_set):
        last_ckpt_time = time.time()
        for batch in train_set:
            self.fit_batch(batch)
            due = torch.tensor(time.time() - last_ckpt_time >= self.ckpt_interval_seconds)
            dist.broadcast(due, src=0)
            if due:
                self._save_intra_epoch_ckpt()
                last_ckpt_time = time.time()

    def fit(self, epochs, train_set):
        train_set = self.make_dataloader(train_set)
        for _ in range(epochs):
            self._fit_train(train_set)


def make_classification(seed, batches=6):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(batches, 8, 24, generator=generator)
    return [(x, (x.sum(dim=1, keepdim=True) > 0).float()) for x in inputs]


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    hparams = {
        "lr": 0.1,
        "ckpt_interval_seconds": 0.25,
        "save_file": f"{tempfile.gettempdir()}/ckpt_{os.environ['MASTER_PORT']}.pt",
    }
    brain = Brain(nn.Linear(24, 1), hparams)
    brain.fit(2, make_classification(dist.get_rank()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
