"""A layer gathers the load of its experts with a functional collective; a rank without experts returns before it.

source: https://github.com/NVIDIA-NeMo/Automodel/pull/935
bug: RS401
ranks: 2
expect: RS401
line: return funcol.all_gather_tensor(self.load, gather_dim=0, group=dist.group.WORLD)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn

NUM_EXPERTS = 2
EXPERTS_PER_RANK = 2


class ExpertLayer(nn.Module):
    """The experts of this rank; with few experts the last ranks have none."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        first = dist.get_rank() * EXPERTS_PER_RANK
        local = range(first, min(first + EXPERTS_PER_RANK, NUM_EXPERTS))
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in local])
        self.load = torch.zeros(EXPERTS_PER_RANK)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        output = tokens
        for index, expert in enumerate(self.experts):
            output = output + expert(tokens)
            self.load[index] += len(tokens)
        return output

    def global_load(self) -> torch.Tensor:
        if len(self.experts) == 0:
            return self.load
        return funcol.all_gather_tensor(self.load, gather_dim=0, group=dist.group.WORLD)


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    layer = ExpertLayer(8)
    for step in range(2):
        hidden = layer(torch.randn(4, 8))
        load = layer.global_load()
        print(f"step {step}: load {load.tolist()}", flush=True)
        norm = hidden.detach().norm()
        dist.all_reduce(norm)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
