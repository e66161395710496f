"""A tester computes a metric that gathers its states from all ranks, on rank 0 only.

source: https://github.com/Lightning-AI/torchmetrics/issues/938
bug: RS401
ranks: 2
expect: RS401
line: value = self.metric.compute()
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class MeanMetric:
    """A mean whose states are gathered from all ranks when it is computed."""

    def __init__(self, sync_on_compute: bool = True) -> None:
        self.sync_on_compute = sync_on_compute
        self.values: list[torch.Tensor] = []

    def update(self, value: torch.Tensor) -> None:
        self.values.append(value.detach())

    def sync(self) -> torch.Tensor:
        local = torch.stack(self.values)
        if not (self.sync_on_compute and dist.is_available() and dist.is_initialized()):
            return local
        gathered = [torch.zeros_like(local) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, local)
        return torch.cat(gathered)

    def compute(self) -> torch.Tensor:
        return self.sync().mean()


class Tester:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.metric = MeanMetric()

    def test(self, batches: int) -> None:
        for _ in range(batches):
            self.metric.update(self.model(torch.randn(4, 8)).abs().mean())
        if dist.get_rank() == 0:
            value = self.metric.compute()
            print(f"mean output {value.item():.3f}", flush=True)


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    Tester(nn.Linear(8, 1)).test(batches=3)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
