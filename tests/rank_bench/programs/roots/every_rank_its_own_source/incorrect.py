"""A hand-written wrapper sends the weights at the start from self.rank, so every rank is its own source.

source: documented: torch.distributed.broadcast, docstring of torch 2.13.0 (src, the source rank, decides who sends)
bug: RS415
ranks: 2
expect: RS415
line: dist.broadcast(param.data, src=self.rank)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class SyncedModel(nn.Module):
    """The module with the same weights on all ranks."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self.rank = dist.get_rank()
        self.sync_params()

    def sync_params(self) -> None:
        for param in self.module.parameters():
            dist.broadcast(param.data, src=self.rank)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.module(batch)


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(dist.get_rank())
    model = SyncedModel(nn.Linear(8, 1, bias=False))
    output = model(torch.ones(1, 8)).detach()
    outputs = [torch.empty_like(output) for _ in range(dist.get_world_size())]
    dist.all_gather(outputs, output)
    if dist.get_rank() == 0:
        print(f"replicas differ by {(outputs[0] - outputs[1]).abs().item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
