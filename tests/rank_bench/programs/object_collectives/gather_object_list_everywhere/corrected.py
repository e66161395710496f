"""Collect metrics on rank 0 with gather_object; only rank 0 passes an output list.

source: documented: torch.distributed.gather_object docstring, torch 2.13.0 (object_gather_list must be None on non-dst ranks)
bug: RS408
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


class Evaluator:
    def __init__(self, model):
        self.model = model.eval()
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()
        self.metrics = {"correct": 0, "seen": 0}

    @torch.no_grad()
    def update(self, inputs, labels):
        predicted = self.model(inputs).argmax(dim=1)
        self.metrics["correct"] += int((predicted == labels).sum())
        self.metrics["seen"] += len(labels)

    def compute(self):
        gathered = [None for _ in range(self.world_size)]
        dist.gather_object(self.metrics, gathered if self.rank == 0 else None, dst=0)
        if self.rank != 0:
            return None
        correct = sum(part["correct"] for part in gathered)
        return correct / sum(part["seen"] for part in gathered)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    evaluator = Evaluator(nn.Linear(6, 3))
    inputs = torch.randn(40, 6)
    labels = torch.randint(3, (40,))
    mine = slice(evaluator.rank, None, evaluator.world_size)
    for batch, expected in zip(inputs[mine].split(10), labels[mine].split(10), strict=True):
        evaluator.update(batch, expected)
    accuracy = evaluator.compute()
    if evaluator.rank == 0:
        print(f"accuracy {accuracy:.3f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
