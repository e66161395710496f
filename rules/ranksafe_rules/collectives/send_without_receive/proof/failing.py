"""Both ranks send their border first; each send waits for a receive that comes after the other's send.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: Timed out waiting 5000ms for send operation to complete
frame: dist.send(mine, dst=neighbour)
"""

from datetime import timedelta

import torch
import torch.distributed as dist


def exchange(mine: torch.Tensor) -> torch.Tensor:
    neighbour = 1 - dist.get_rank()
    theirs = torch.empty_like(mine)
    dist.send(mine, dst=neighbour)
    dist.recv(theirs, src=neighbour)
    return theirs


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    border = torch.full((1 << 16,), float(dist.get_rank()))
    theirs = exchange(border)
    print(f"rank {dist.get_rank()}: received {theirs[0].item()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
