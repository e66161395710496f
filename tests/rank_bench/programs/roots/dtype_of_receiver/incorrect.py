"""Rank 0 broadcasts float32 statistics and the other ranks receive them in an int32 tensor.

source: https://github.com/pytorch/pytorch/issues/91535
bug: RS415
ranks: 2
expect: RS415
line: dist.broadcast(scale, src=0)
decidable: yes
shows: silent rank 1: scale .10[0-9]{8}
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


def is_main_process() -> bool:
    return int(os.environ.get("RANK", "0")) == 0


def compute_scale(features: int) -> torch.Tensor:
    """The largest value of each feature, as found by the first rank in the whole data set."""
    samples = torch.arange(4.0 * features).reshape(4, features)
    return samples.amax(dim=0) / samples.amax()


def load_scale(features: int) -> torch.Tensor:
    if is_main_process():
        scale = compute_scale(features)
    else:
        scale = torch.zeros(features, dtype=torch.int32)
    dist.broadcast(scale, src=0)
    return scale


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    scale = load_scale(4)
    print(f"rank {dist.get_rank()}: scale {scale.tolist()}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
