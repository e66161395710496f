"""The ranks meet at the port that their launcher has chosen.

runs-on: cpu-ranks
ranks: 2
expect: output rank 1 goes on
"""

import os
from datetime import timedelta

import torch.distributed as dist


def main() -> None:
    rank = int(os.environ["RANK"])
    os.environ.setdefault("MASTER_PORT", "29511")
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    print(f"rank {rank} goes on")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
