"""Rank 0 reads the label names, every rank uses them, and nothing takes them to rank 1.

runs-on: cpu-ranks
ranks: 2
expect: exception UnboundLocalError: local variable 'names'
frame: head = nn.Linear(8, len(names))
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def read_names() -> list[str]:
    return ["cat", "dog", "horse"]


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    if dist.get_rank() == 0:
        names = read_names()
    head = nn.Linear(8, len(names))
    scores = head(torch.randn(4, 8)).sum(0)
    dist.all_reduce(scores)
    print(f"rank {dist.get_rank()}: {len(names)} classes")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
