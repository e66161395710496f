"""All ranks make the group, and only its use stands under a condition.

runs-on: cpu-ranks
ranks: 2
expect: output rank 1: 1, group True
"""

from datetime import timedelta

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    writers = dist.new_group([0, 1])
    step = torch.tensor([dist.get_rank()])
    dist.all_reduce(step)
    print(f"rank {dist.get_rank()}: {step.item()}, group {writers is not None}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
