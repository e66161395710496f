"""All ranks name rank 0 as the source.

runs-on: cpu-ranks
ranks: 2
expect: output rank 1: seed 100
"""

from datetime import timedelta

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    seed = torch.tensor([100 + rank])
    dist.broadcast(seed, src=0)
    print(f"rank {rank}: seed {seed.item()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
