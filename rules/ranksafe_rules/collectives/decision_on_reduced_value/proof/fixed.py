r"""After all_reduce every rank holds the sum, so that every rank decides alike.

runs-on: cpu-ranks
ranks: 2
expect: output ^rank 0: best 4\.0$
expect: output ^rank 1: best 4\.0$
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def validate(epoch: int) -> torch.Tensor:
    return torch.tensor([2.0 + dist.get_rank() - 0.1 * epoch])


def save(model: nn.Module) -> None:
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "best.pt")
    dist.barrier()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    model = nn.Linear(8, 1)
    best = 4.0
    for epoch in range(3):
        loss = validate(epoch)
        dist.all_reduce(loss)
        if loss.item() < best:
            best = loss.item()
            save(model)
    print(f"rank {dist.get_rank()}: best {best:.1f}\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
