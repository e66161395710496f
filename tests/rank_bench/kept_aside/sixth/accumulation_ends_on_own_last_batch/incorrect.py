"""Synchronises accumulated gradients every few batches of packed sentences, of which each rank has its own number.

source: documented: DistributedDataParallel, no_sync and uneven inputs, torch 2.13
bug: RS406
ranks: 2
expect: RS406
line: for index, batch in enumerate(packed):
decidable: yes
shows: hang
"""

import contextlib
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

BUDGET = 24
ACCUMULATE = 2


def sentences(count):
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(2, 16, (count,), generator=generator).tolist()
    lengths.sort()
    share = count // dist.get_world_size()
    return lengths[dist.get_rank() * share : (dist.get_rank() + 1) * share]


def pack(lengths):
    """Batches of sentences, each with as many words as fit into the budget."""
    batches, current = [], []
    for length in lengths:
        if sum(current) + length > BUDGET:
            batches.append(current)
            current = []
        current.append(length)
    if current:
        batches.append(current)
    return batches


def words(batch):
    return torch.randint(20, (sum(batch),))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.head = nn.Linear(6, 20)

    def forward(self, tokens):
        return self.head(self.embed(tokens))


def train_epoch(model, optimizer, packed):
    updates = 0
    for index, batch in enumerate(packed):
        last = (index + 1) % ACCUMULATE == 0
        tokens = words(batch)
        with contextlib.nullcontext() if last else model.no_sync():
            loss = nn.functional.cross_entropy(model(tokens[:-1]), tokens[1:])
            (loss / ACCUMULATE).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
    return updates


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(LanguageModel())
    optimizer = torch.optim.Adam(model.parameters())
    packed = pack(sentences(40))
    print(f"rank {dist.get_rank()}: {train_epoch(model, optimizer, packed)} updates", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
