"""Lets all ranks know of out-of-memory in the forward, so that all skip the batch together.

source: https://github.com/facebookresearch/fairseq/pull/3989
bug: RS410
ranks: 2
expect: clean
decidable: yes
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


class TranslationModel(nn.Module):
    def __init__(self, max_tokens=24):
        super().__init__()
        self.max_tokens = max_tokens
        self.embed = nn.Embedding(32, 8)
        self.out = nn.Linear(8, 32)

    def forward(self, tokens):
        if tokens.numel() > self.max_tokens:
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
        return self.out(self.embed(tokens))


class Trainer:
    def __init__(self, model):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def zero_grad(self):
        self.optimizer.zero_grad()

    def train_step(self, sample):
        self.zero_grad()
        ooms = 0
        try:
            logits = self.model(sample)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), sample.flatten())
        except RuntimeError as e:
            if "out of memory" not in str(e):
                raise
            logger.warning("attempting to recover from OOM in forward/backward pass")
            ooms += 1
        any_oom = torch.tensor(ooms)
        dist.all_reduce(any_oom, op=dist.ReduceOp.MAX)
        if any_oom == 0:
            loss.backward()
            self.optimizer.step()
        return ooms


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    trainer = Trainer(TranslationModel())
    lengths = [4, 5, 6, 11, 4, 6, 5, 5]
    ooms = sum(trainer.train_step(torch.randint(0, 32, (3, n))) for n in lengths[rank::world_size])
    print(f"rank {rank}: {ooms} batches skipped")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
