"""The two replicas of an expert average their load, but the ranks without the expert call the all_reduce as well.

source: https://github.com/pytorch/pytorch/issues/75755
bug: RS411
ranks: 4
expect: RS411
line: dist.all_reduce(self.load, group=self.group)
decidable: yes
shows: silent rank 2: mean load 6[.]0
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

EXPERT_RANKS = [0, 1]


class ReplicatedExpert(nn.Module):
    """An expert that lives on EXPERT_RANKS and counts the tokens that it was given."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.group = dist.new_group(EXPERT_RANKS)
        self.register_buffer("load", torch.zeros(1))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        self.load += tokens.shape[0]
        return self.proj(tokens)

    def average_load(self) -> torch.Tensor:
        dist.all_reduce(self.load, group=self.group)
        self.load /= len(EXPERT_RANKS)
        return self.load


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = dist.get_rank()
    expert = ReplicatedExpert(8)
    for _ in range(3):
        expert(torch.randn(rank + 2, 8))
    load = expert.average_load().item()
    print(f"rank {rank}: mean load {load:.1f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
