"""Rank 0 reads the label names and broadcasts them before any rank uses them.

runs-on: cpu-ranks
ranks: 2
expect: output rank 1: 3 classes
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def read_names() -> list[str]:
    return ["cat", "dog", "horse"]


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    box = [read_names() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    names = box[0]
    head = nn.Linear(8, len(names))
    scores = head(torch.randn(4, 8)).sum(0)
    dist.all_reduce(scores)
    print(f"rank {dist.get_rank()}: {len(names)} classes")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
