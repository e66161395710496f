"""Every rank validates, and rank 0 prints.

runs-on: cpu-ranks
ranks: 2
expect: output ^epoch 1: [0-9]
"""

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
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    model = FullyShardedDataParallel(nn.Linear(8, 1), device_id=torch.device("cpu"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        loss = validate(model)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {loss:.3f}")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
