"""Ends SFT with an evaluation of the unwrapped model on the main rank.

source: https://github.com/FareedKhan-dev/train-llm-from-scratch/pull/32
bug: RS403
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


@dataclass
class DistContext:
    rank: int
    world_size: int

    @property
    def is_main(self):
        return self.rank == 0


def setup():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    return DistContext(dist.get_rank(), dist.get_world_size())


def unwrap(model):
    return model.module if isinstance(model, DistributedDataParallel) else model


class TinyLM(nn.Module):
    def __init__(self, vocab=32, dim=16, block=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.register_buffer("mask", torch.tril(torch.ones(block, block)))
        self.lm_head = nn.Linear(dim, vocab)

    def forward(self, ids):
        h = self.embed(ids)
        weights = (h @ h.transpose(1, 2)).masked_fill(self.mask == 0, float("-inf")).softmax(-1)
        return self.lm_head(weights @ h)


@torch.no_grad()
def evaluate(model, batches):
    losses = [F.cross_entropy(model(x)[:, :-1].flatten(0, 1), x[:, 1:].flatten()) for x in batches]
    return torch.stack(losses).mean().item()


def main(steps=6):
    ctx = setup()
    torch.manual_seed(0)
    model = DistributedDataParallel(TinyLM())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    val_batches = [torch.randint(0, 32, (2, 8)) for _ in range(2)]
    for step in range(steps):
        ids = torch.randint(0, 32, (4, 8))
        loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    if ctx.is_main:
        final_loss = evaluate(unwrap(model), val_batches)
        print(f"final eval loss {final_loss:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
