"""Both ranks start their send and their receive together and wait for the two.

runs-on: cpu-ranks
ranks: 2
expect: output rank 1: received 0.0
"""

from datetime import timedelta

import torch
import torch.distributed as dist


def exchange(mine: torch.Tensor) -> torch.Tensor:
    neighbour = 1 - dist.get_rank()
    theirs = torch.empty_like(mine)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, mine, neighbour),
            dist.P2POp(dist.irecv, theirs, neighbour),
        ]
    )
    for work in works:
        work.wait()
    return theirs


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    border = torch.full((1 << 16,), float(dist.get_rank()))
    theirs = exchange(border)
    print(f"rank {dist.get_rank()}: received {theirs[0].item()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
