"""Trains a graph network with DDP and validates in another file, on the wrapped model of the first rank.

source: https://github.com/jpata/particleflow/pull/233
bug: RS403
ranks: 2
expect: RS403
file: validation_incorrect.py
line: prediction = model(elements)
decidable: yes
shows: hang
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from validation_incorrect import validation_run


class ParticleModel(nn.Module):
    """Maps detector elements to particle momenta."""

    def __init__(self, features: int = 6) -> None:
        super().__init__()
        self.encode = nn.Linear(features, 16)
        self.norm = nn.BatchNorm1d(16)
        self.decode = nn.Linear(16, 3)

    def forward(self, elements: torch.Tensor) -> torch.Tensor:
        return self.decode(torch.relu(self.norm(self.encode(elements))))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-epochs", type=int, default=2)
    args = parser.parse_args()
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = int(os.environ["RANK"])

    torch.manual_seed(rank)
    model = DDP(ParticleModel())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    valid = torch.randn(24, 6)
    for epoch in range(args.num_epochs):
        for _ in range(4):
            elements = torch.randn(16, 6)
            loss = (model(elements) - elements[:, :3]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        validation_run(rank, model, valid, epoch)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
