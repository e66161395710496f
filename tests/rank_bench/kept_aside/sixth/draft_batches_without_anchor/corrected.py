"""Trains a draft model; a micro-batch in which some rank has no long sample is skipped by all.

source: https://github.com/NVIDIA-NeMo/Automodel/pull/2468
bug: RS410
ranks: 2
expect: clean
shows: fine
"""

import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class NoValidAnchorsError(RuntimeError):
    """No sample of the micro-batch is long enough to form a block."""


@dataclass
class DraftConfig:
    vocabulary: int = 32
    width: int = 8
    block: int = 6
    samples: int = 24
    batch: int = 2
    lr: float = 0.05


class Draft(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.head = nn.Linear(config.width, config.vocabulary)

    def forward(self, tokens):
        return self.head(self.embed(tokens).mean(dim=1))


def anchors(samples, block):
    """The first block of each sample that has one, with the token after it."""
    long_enough = [sample for sample in samples if len(sample) > block]
    if not long_enough:
        raise NoValidAnchorsError("all samples are shorter than a block")
    blocks = torch.stack([sample[:block] for sample in long_enough])
    targets = torch.stack([sample[block] for sample in long_enough])
    return blocks, targets


def make_samples(config):
    generator = torch.Generator().manual_seed(dist.get_rank())
    lengths = torch.randint(3, 12, (config.samples,), generator=generator).tolist()
    return [torch.randint(config.vocabulary, (n,), generator=generator) for n in lengths]


def train(config):
    model = DistributedDataParallel(Draft(config))
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr)
    samples = make_samples(config)
    skipped = 0
    for start in range(0, len(samples), config.batch):
        micro_batch = samples[start : start + config.batch]
        try:
            blocks, targets = anchors(micro_batch, config.block)
            valid = torch.ones(1)
        except NoValidAnchorsError:
            valid = torch.zeros(1)
        dist.all_reduce(valid, op=dist.ReduceOp.MIN)
        if valid.item() == 0:
            skipped += 1
            continue
        loss = nn.functional.cross_entropy(model(blocks), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    print(f"rank {dist.get_rank()}: {skipped} micro-batches skipped", flush=True)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    train(DraftConfig())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
