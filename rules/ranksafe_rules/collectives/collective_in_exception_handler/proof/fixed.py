"""The handler only notes the failure; every rank reaches the same all_reduce, and all learn of it.

runs-on: cpu-ranks
ranks: 2
expect: output rank 1: total 3.0, 1 sample skipped
"""

from datetime import timedelta

import torch
import torch.distributed as dist


def decode(text: str) -> torch.Tensor:
    return torch.tensor([float(word) for word in text.split(",")])


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    samples = ["1.0,2.0", "3.0,oops"]
    local, failed = torch.zeros(()), 0.0
    try:
        local = decode(samples[dist.get_rank()]).sum()
    except ValueError:
        failed = 1.0
    sums = torch.stack([local, torch.tensor(failed)])
    dist.all_reduce(sums)
    total, skipped = sums.tolist()
    print(f"rank {dist.get_rank()}: total {total}, {skipped:.0f} sample skipped")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
