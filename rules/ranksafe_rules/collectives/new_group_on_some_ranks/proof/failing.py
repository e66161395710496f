"""Only rank 0 makes the group of both ranks; it waits for rank 1, which never comes.

runs-on: cpu-ranks
ranks: 2
expect: exception DistStoreError: wait timeout after 5000ms
frame: writers = dist.new_group([0, 1], timeout=timedelta(seconds=5))
"""

import time
from datetime import timedelta

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    writers = None
    if dist.get_rank() == 0:
        writers = dist.new_group([0, 1], timeout=timedelta(seconds=5))
    else:
        time.sleep(3)
    step = torch.tensor([dist.get_rank()])
    dist.all_reduce(step)
    print(f"rank {dist.get_rank()}: {step.item()}, group {writers is not None}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
