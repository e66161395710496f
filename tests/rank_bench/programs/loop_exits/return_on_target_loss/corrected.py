"""Train for a given number of steps; the step count that ends the training is the same on all ranks.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/379
bug: RS404
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.01)
    return parser.parse_args()


def average_gradients(model, world_size):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world_size


def load_shard(rank, world_size):
    generator = torch.Generator().manual_seed(1)
    samples = torch.randn(256, 6, generator=generator)
    samples[1::2] *= 0.1
    return samples[rank::world_size]


def train(model, samples, args, world_size):
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for step, batch in enumerate(samples.split(4), start=1):
        optimizer.zero_grad()
        loss = (model(batch) - batch.sum(dim=1, keepdim=True)).pow(2).mean()
        loss.backward()
        average_gradients(model, world_size)
        optimizer.step()
        if step >= args.max_steps:
            return step
    return len(samples)


def main():
    args = parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    model = nn.Linear(6, 1, bias=False)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    steps = train(model, load_shard(rank, world_size), args, world_size)
    dist.barrier()
    if rank == 0:
        print(f"trained for {steps} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
