"""Takes the newer name of a collective where torch has it and the older one otherwise, the same on all ranks.

source: https://github.com/huggingface/accelerate/pull/4272
bug: RS410
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

try:
    from torch.distributed import all_gather_single as all_gather_flat
except ImportError:  # before torch 2.13
    from torch.distributed import all_gather_into_tensor as all_gather_flat


def average(tensor: torch.Tensor) -> torch.Tensor:
    """The mean over all ranks, also with backends that cannot average themselves."""
    world_size = dist.get_world_size()
    if dist.get_backend() == "nccl":
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    else:
        dist.all_reduce(tensor, op=dist.ReduceOp.SUM)
        tensor /= world_size
    return tensor


def gather(tensor: torch.Tensor) -> torch.Tensor:
    output = tensor.new_empty(dist.get_world_size() * tensor.numel())
    if hasattr(dist, "all_gather_into_tensor"):
        all_gather_flat(output, tensor.contiguous().view(-1))
    else:
        parts = list(output.chunk(dist.get_world_size()))
        dist.all_gather(parts, tensor.contiguous().view(-1))
        output = torch.cat(parts)
    return output.view(-1, *tensor.shape[1:])


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = int(os.environ["RANK"])
    mean = average(torch.full((1,), float(rank)))
    rows = gather(torch.full((2, 3), float(rank)))
    print(f"rank {rank}: mean {mean.item()}, {len(rows)} rows", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
