"""A GAN trains the weaker of its two nets on all ranks, by scores that only the first rank has from all.

source: https://github.com/pytorch/pytorch/issues/76527
bug: RS405
ranks: 3
expect: RS405
line: if margin.item() > 0:
decidable: yes
shows: hang
"""

import itertools
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LATENT = 2


def build(*sizes):
    layers = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.LeakyReLU(0.2)]
    return DistributedDataParallel(nn.Sequential(*layers[:-1]))


def margin_of_critic(critic, real, fake):
    """How much higher than fakes the critic scores what is real, over all ranks."""
    with torch.no_grad():
        margin = (critic.module(real) - critic.module(fake)).mean() + 0.4 * (dist.get_rank() - 1)
    dist.reduce(margin, dst=0)
    return margin


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(steps):
    maker, critic = build(LATENT, 8, 3), build(3, 12, 1)
    of_maker = torch.optim.RMSprop(maker.parameters(), lr=0.01)
    of_critic = torch.optim.RMSprop(critic.parameters(), lr=0.01)
    turns = {"maker": 0, "critic": 0}
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        real = torch.randn(16, 3, generator=generator) + 2
        noise = torch.randn(16, LATENT, generator=generator)
        margin = margin_of_critic(critic, real, maker.module(noise))
        if margin.item() > 0:
            update(of_maker, -critic.module(maker(noise)).mean())
            turns["maker"] += 1
        else:
            fake = maker.module(noise).detach()
            update(of_critic, critic(torch.cat([fake, -real])).mean())
            turns["critic"] += 1
    return turns


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    turns = train(steps=12)
    print(f"rank {dist.get_rank()}: {turns}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
