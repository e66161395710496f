"""Rank 1 meets a damaged sample and waits in its handler; rank 0 meets none and waits in all_reduce.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: Timed out waiting 5000ms for
frame: dist.barrier()
"""

import time
from datetime import timedelta

import torch
import torch.distributed as dist


def decode(text: str) -> torch.Tensor:
    values = [float(word) for word in text.split(",")]
    time.sleep(0.5)
    return torch.tensor(values)


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    samples = ["1.0,2.0", "3.0,oops"]
    try:
        total = decode(samples[dist.get_rank()]).sum()
        dist.all_reduce(total)
        print(f"total {total.item()}")
    except ValueError as error:
        print(f"rank {dist.get_rank()} skips its sample: {error}")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
