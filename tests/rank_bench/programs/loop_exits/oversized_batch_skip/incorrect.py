"""Skip batches that would not fit into memory; how many tokens a batch has depends on the rank's sentences, so one rank skips alone.

source: https://github.com/HannesStark/FlowSite/pull/1
bug: RS404
ranks: 2
expect: RS404
line: continue
decidable: yes
shows: hang
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Tagger(nn.Module):
    def __init__(self, vocabulary=50, width=8, tags=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.head = nn.Linear(width, tags)

    def forward(self, tokens):
        return self.head(self.embedding(tokens)).flatten(0, 1)


def read_batches(rank, world_size, count=12):
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(5, 20, (count,), generator=generator)
    lengths[7] = 90
    batches = [torch.randint(50, (4, int(length)), generator=generator) for length in lengths]
    return batches[rank::world_size]


def fits_in_memory(tokens, max_tokens):
    return tokens.numel() <= max_tokens


def train(args, rank, world_size):
    model = DistributedDataParallel(Tagger())
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    for tokens in read_batches(rank, world_size):
        too_large = not fits_in_memory(tokens, args.max_tokens)
        if too_large:
            print(f"rank {rank}: skipping a batch of {tokens.numel()} tokens")
            continue
        optimizer.zero_grad()
        criterion(model(tokens), tokens.flatten() % 4).backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-tokens", type=int, default=128)
    args = parser.parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    train(args, dist.get_rank(), dist.get_world_size())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
