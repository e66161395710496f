"""Sends the decision of the main process to all, which leave the loop together.

source: https://github.com/isi-nlp/rtg/issues/11
bug: RS404
ranks: 2
expect: clean
shows: fine
"""

import logging as log
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class dtorch:
    """What the trainer needs of torch.distributed."""

    rank = int(os.environ.get("RANK", "0"))
    is_global_main = rank == 0

    @staticmethod
    def barrier():
        if dist.is_initialized():
            dist.barrier()


class EarlyStopper:
    def __init__(self, patience=2):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def validation(self, score):
        self.bad = 0 if score < self.best else self.bad + 1
        self.best = min(self.best, score)

    def is_stop(self):
        return self.bad >= self.patience


class SteppedTrainer:
    def __init__(self, model, opt):
        self.core_model = model
        self.model = DistributedDataParallel(model)
        self.opt = opt

    def _train_step(self, x, y):
        self.opt.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.opt.step()
        return loss.item()

    @torch.no_grad()
    def run_valid_epoch(self, val_data):
        return sum(nn.functional.cross_entropy(self.core_model(x), y).item() for x, y in val_data)

    def train(self, train_data, val_data, check_point=2, early_stop=None):
        stopper = EarlyStopper(**early_stop) if early_stop else None
        for batch_count, (x, y) in enumerate(train_data, start=1):
            loss = self._train_step(x, y)
            is_check_pt = batch_count % check_point == 0
            if is_check_pt:
                stop = torch.zeros(1)
                if dtorch.is_global_main:
                    val_loss = self.run_valid_epoch(val_data)
                    log.info(f"step {batch_count}: train {loss:.3f} valid {val_loss:.3f}")
                    if stopper:
                        stopper.validation(val_loss)
                        if stopper.is_stop():
                            log.info(f"Stopping at {batch_count}")
                            stop += 1
                dist.broadcast(stop, src=0)
                if stop:
                    break
        dtorch.barrier()


def make_data(seed, size=20):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 8, 4, generator=generator)
    return [(batch, torch.randint(2, (8,), generator=generator)) for batch in x]


if __name__ == "__main__":
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    trainer = SteppedTrainer(model, torch.optim.SGD(model.parameters(), lr=0.5))
    trainer.train(make_data(dtorch.rank), make_data(99, 4), early_stop={"patience": 2})
    dist.destroy_process_group()
