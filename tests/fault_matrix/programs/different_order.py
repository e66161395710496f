"""Two process groups, entered in different order: each rank waits where the other is not.

fault: deadlock by different order
outcome: failed
rank: any
kind: hang
line: dist.all_reduce(value, group=first)  # rank 0 is here
waits: dist.all_reduce(value, group=second)  # rank 1 is here
"""

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    first, second = dist.new_group(), dist.new_group()
    dist.barrier()
    value = torch.ones(2)
    if dist.get_rank() == 0:
        dist.all_reduce(value, group=first)  # rank 0 is here
        dist.all_reduce(value, group=second)
    else:
        dist.all_reduce(value, group=second)  # rank 1 is here
        dist.all_reduce(value, group=first)


if __name__ == "__main__":
    main()
