"""Every rank names itself as the source: both send their seed, and neither receives one.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: Timed out waiting 5000ms for send operation to complete
frame: dist.broadcast(seed, src=rank)
"""

from datetime import timedelta

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    seed = torch.tensor([100 + rank])
    dist.broadcast(seed, src=rank)
    print(f"rank {rank}: seed {seed.item()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
