"""Rank 0 alone validates an FSDP model: its forward gathers the shards of all ranks.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: Timed out waiting 5000ms for
frame: total += model(torch.randn(4, 8)).square().mean().item()
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel


@torch.no_grad()
def validate(model: nn.Module) -> float:
    model.eval()
    total = 0.0
    for _ in range(3):
        total += model(torch.randn(4, 8)).square().mean().item()
    model.train()
    return total / 3


def main() -> None:
    # Rank 0 gives up first; the end of its peer would hide what it waits for.
    seconds = 5 if os.environ["RANK"] == "0" else 30
    dist.init_process_group("gloo", timeout=timedelta(seconds=seconds))
    model = FullyShardedDataParallel(nn.Linear(8, 1), device_id=torch.device("cpu"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            loss = validate(model)
            print(f"epoch {epoch}: {loss:.3f}")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
