"""Draws samples until this rank has enough good ones, judging them by a mean over all ranks' draws.

source: documented: torch.distributed, all ranks perform the same collectives in the same order, torch 2.13
bug: RS406
ranks: 2
expect: RS406
line: while len(self.kept) < wanted:
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Truncated:
    """Keeps the draws of a generator that lie near the mean of the draws of all ranks."""

    def __init__(self, net, seed, reach=0.8):
        self.net = net
        self.reach = reach
        self.random = torch.Generator().manual_seed(seed)
        self.kept = []

    def mean_over_ranks(self, draws):
        mean = draws.mean(dim=0)
        dist.all_reduce(mean)
        return mean / dist.get_world_size()

    def draw(self):
        draws = self.net(torch.randn(8, 3, generator=self.random))
        near = (draws - self.mean_over_ranks(draws)).norm(dim=1) < self.reach
        self.kept.extend(draws[near])

    @torch.no_grad()
    def collect(self, wanted):
        while len(self.kept) < wanted:
            self.draw()
        return torch.stack(self.kept[:wanted])


def covariance(samples):
    centred = samples - samples.mean(dim=0)
    result = centred.t() @ centred / len(samples)
    dist.all_reduce(result)
    return result / dist.get_world_size()


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    sampler = Truncated(net, seed=20 + dist.get_rank(), reach=0.35)
    samples = sampler.collect(wanted=40)
    spread = covariance(samples).diagonal()
    if dist.get_rank() == 0:
        print(f"spread of the truncated samples: {spread.tolist()}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
