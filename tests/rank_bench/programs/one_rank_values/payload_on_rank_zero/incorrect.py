"""Build the list for broadcast_object_list on rank 0 only; the other ranks have no list to receive into.

source: documented: torch.distributed.broadcast_object_list docstring, torch 2.13.0 (each rank must provide lists of equal sizes)
bug: RS409
ranks: 3
expect: RS409
line: dist.broadcast_object_list(payload, src=0)
decidable: yes
shows: error UnboundLocalError.*payload
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def scan_labels(count):
    """Stands for reading an annotation file."""
    generator = torch.Generator().manual_seed(8)
    labels = torch.randint(4, (count,), generator=generator)
    names = [f"class_{number}" for number in labels.unique().tolist()]
    weights = 1 / torch.bincount(labels).float()
    return names, weights / weights.sum()


def prepare(args):
    if is_main_process():
        names, weights = scan_labels(args.samples)
        print("found", ", ".join(names))
        payload = [names, weights]
    dist.broadcast_object_list(payload, src=0)
    return payload


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=200)
    args = parser.parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    names, weights = prepare(args)
    model = nn.Linear(8, len(names))
    criterion = nn.CrossEntropyLoss(weight=weights)
    loss = criterion(model(torch.randn(5, 8)), torch.randint(len(names), (5,)))
    dist.all_reduce(loss.detach())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
