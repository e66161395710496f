"""Trains until all ranks together have seen enough tokens, a number that reduce completes on rank 0 only.

source: https://github.com/pytorch/pytorch/issues/76527
bug: RS405
ranks: 2
expect: RS405
line: while seen.sum() < TOKEN_BUDGET:
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TOKEN_BUDGET = 400


def batches(rank):
    """Documents in two languages; those of the second rank are shorter."""
    generator = torch.Generator().manual_seed(rank)
    longest = 40 if rank == 0 else 20
    while True:
        length = int(torch.randint(10, longest, (1,), generator=generator))
        yield torch.randint(64, (length,), generator=generator)


class TokenCounter:
    def __init__(self):
        self.per_language = torch.zeros(2)

    def update(self, rank, tokens):
        self.per_language[rank] += tokens.numel()

    def total(self):
        result = self.per_language.clone()
        dist.reduce(result, dst=0)
        return result


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Sequential(nn.Embedding(64, 16), nn.Linear(16, 64)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    counter = TokenCounter()
    data = batches(rank)
    seen = counter.total()
    steps = 0
    while seen.sum() < TOKEN_BUDGET:
        tokens = next(data)
        logits = model(tokens[:-1])
        nn.functional.cross_entropy(logits, tokens[1:]).backward()
        optimizer.step()
        optimizer.zero_grad()
        counter.update(rank, tokens)
        seen = counter.total()
        steps += 1
    print(f"rank {rank}: {steps} steps, {seen.tolist()} tokens", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
