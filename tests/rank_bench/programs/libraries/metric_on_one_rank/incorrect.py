"""A metric sums its states with reduce, which completes them on rank 0 only, and all ranks decide on its value.

source: https://github.com/pytorch/pytorch/issues/77562
bug: RS405
ranks: 2
expect: RS405
line: if accuracy > best:
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Accuracy:
    """Counts on every rank and adds the counts up in compute."""

    def __init__(self) -> None:
        self.correct = torch.zeros(1)
        self.total = torch.zeros(1)

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        self.correct += (logits.argmax(dim=1) == labels).sum()
        self.total += labels.numel()

    def compute(self) -> float:
        states = torch.cat([self.correct, self.total])
        dist.reduce(states, dst=0)
        return (states[0] / states[1]).item()


def evaluate(model: nn.Module, epoch: int, rank: int) -> float:
    metric = Accuracy()
    inputs = torch.eye(4)
    # Rank 0 gets better from epoch to epoch and rank 1 worse.
    labels = torch.arange(4) if rank == 0 else torch.arange(4).roll(epoch)
    metric.update(model(inputs), labels)
    return metric.compute()


def save_all_shards(model: nn.Module) -> None:
    """Every rank writes its shard, and nobody goes on before the checkpoint is complete."""
    dist.barrier()


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = dist.get_rank()
    model = nn.Identity()
    best = 0.0
    for epoch in range(3):
        accuracy = evaluate(model, epoch + rank, rank)
        if accuracy > best:
            best = accuracy
            save_all_shards(model)
        steps = torch.ones(1)
        dist.all_reduce(steps)
    print(f"rank {rank}: best accuracy {best:.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
