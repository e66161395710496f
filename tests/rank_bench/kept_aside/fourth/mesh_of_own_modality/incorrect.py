"""Makes the process group of each modality on the ranks that belong to it only.

source: https://github.com/cornstarch-org/Cornstarch/pull/76
bug: RS412
ranks: 3
expect: RS412
line: group = dist.new_group(ranks)
decidable: yes
shows: hang
"""

import os
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


@dataclass
class ModalityPlan:
    ranks: list[int]
    width: int


@dataclass
class ParallelizationPlan:
    modalities: dict[str, ModalityPlan]
    groups: dict[str, dist.ProcessGroup] = field(default_factory=dict)

    def materialize(self):
        """Make the groups and the modules of the modalities of this rank."""
        my_rank = dist.get_rank()
        modules = {}
        for name, plan in self.modalities.items():
            ranks = plan.ranks
            if my_rank not in ranks:
                continue
            group = dist.new_group(ranks)
            self.groups[name] = group
            modules[name] = nn.Linear(plan.width, plan.width)
        return modules


def average_gradients(module, group):
    for parameter in module.parameters():
        dist.all_reduce(parameter.grad, group=group)
        parameter.grad /= dist.get_world_size(group)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    plan = ParallelizationPlan(
        {"vision": ModalityPlan([0, 1], 6), "language_model": ModalityPlan([1, 2], 8)}
    )
    modules = plan.materialize()
    for name, module in modules.items():
        width = plan.modalities[name].width
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            module(torch.randn(4, width)).pow(2).mean().backward()
            average_gradients(module, plan.groups[name])
            optimizer.step()
        print(f"rank {dist.get_rank()} trained {name}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
