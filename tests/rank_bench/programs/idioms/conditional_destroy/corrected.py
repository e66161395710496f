"""Leaves the process group only where there is one and only after success; rank 0 prints and returns before the others.

source: https://github.com/pytorch/torchtitan/pull/1342
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

logger = logging.getLogger(__name__)


class Trainer:
    def __init__(self) -> None:
        self.model = DistributedDataParallel(nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, steps: int) -> torch.Tensor:
        loss = torch.zeros(())
        for _ in range(steps):
            loss = self.model(torch.randn(4, 8)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        loss = loss.detach()
        dist.all_reduce(loss)
        return loss / dist.get_world_size()

    def close(self) -> None:
        del self.optimizer


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    trainer = None
    try:
        trainer = Trainer()
        loss = trainer.train(steps=3)
    except Exception:
        if trainer:
            trainer.close()
        raise
    else:
        rank = dist.get_rank()
        trainer.close()
        if dist.is_initialized():
            dist.destroy_process_group()
        if rank == 0:
            print(f"loss {loss.item():.3f}", flush=True)
            return
        logger.info("rank %d is done", rank)


if __name__ == "__main__":
    main()
