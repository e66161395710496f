"""Only rank 0 holds what dist.reduce has summed; rank 1 compares its own part and goes to save alone.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: Timed out waiting 5000ms for
frame: dist.barrier()
"""

import os
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
    # Rank 1 gives up first; the end of its peer would hide what it waits for.
    seconds = 5 if os.environ["RANK"] == "1" else 30
    dist.init_process_group("gloo", timeout=timedelta(seconds=seconds))
    model = nn.Linear(8, 1)
    best = 4.0
    for epoch in range(3):
        loss = validate(epoch)
        dist.reduce(loss, dst=0)
        if loss.item() < best:
            best = loss.item()
            save(model)
    print(f"rank {dist.get_rank()}: best {best:.1f}\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
