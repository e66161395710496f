"""Compute the domain weights on rank 0 and broadcast them before they become an attribute of the model.

source: https://github.com/sangmichaelxie/doremi/issues/8
bug: RS409
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

NUM_DOMAINS = 3


class ProxyModel(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.encoder = nn.Linear(width, 1)

    def per_sample_loss(self, samples):
        return self.encoder(samples).squeeze(1).pow(2)

    def weighted_loss(self, samples, domains):
        weights = self.domain_weights[domains]
        return (weights * self.per_sample_loss(samples)).sum() / weights.sum()


def excess_loss_weights(model, samples, domains):
    with torch.no_grad():
        losses = model.per_sample_loss(samples)
    means = torch.stack([losses[domains == domain].mean() for domain in range(NUM_DOMAINS)])
    return torch.softmax(means, dim=0)


def train(model, rank, world_size, rounds=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(10 + rank)
    for _ in range(rounds):
        samples = torch.randn(12, 6, generator=generator)
        domains = torch.arange(12) % NUM_DOMAINS
        weights = torch.empty(NUM_DOMAINS)
        if rank == 0:
            weights = excess_loss_weights(model, samples, domains)
        dist.broadcast(weights, src=0)
        model.domain_weights = weights
        optimizer.zero_grad()
        model.weighted_loss(samples, domains).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world_size
        optimizer.step()


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    model = ProxyModel()
    train(model, dist.get_rank(), dist.get_world_size())
    print("domain weights", [round(weight, 3) for weight in model.domain_weights.tolist()])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
