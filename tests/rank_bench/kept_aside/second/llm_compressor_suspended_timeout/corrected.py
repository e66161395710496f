"""Saves within a temporary group of all ranks with a longer timeout, which all ranks create.

source: https://github.com/vllm-project/llm-compressor/pull/2869
bug: RS412
ranks: 4
expect: clean
decidable: yes
shows: fine
"""

import os
import tempfile
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist

SAVE_TIMEOUT = timedelta(hours=3)


@contextmanager
def suspend_distributed_timeout(current_group, timeout=SAVE_TIMEOUT):
    """Lets ranks wait for each other for longer than the timeout of their group."""
    if not dist.is_initialized():
        yield
        return
    suspend_group = dist.new_group(backend="gloo", timeout=timeout)
    try:
        dist.barrier(group=current_group)
        yield
    finally:
        dist.barrier(group=suspend_group)
        dist.barrier(group=current_group)


def quantize(weight):
    scale = weight.abs().amax(dim=1, keepdim=True) / 127
    return (weight / scale).round().to(torch.int8), scale


def save(weight):
    path = os.path.join(tempfile.mkdtemp(), "model.pt")
    torch.save(quantize(weight), path)
    print(f"saved {os.path.getsize(path) > 0}", flush=True)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    rank = dist.get_rank()
    # the even ranks hold the layers, the odd ones calibrate
    holders = [0, 2]
    holder_group = dist.new_group(holders, timeout=limit)
    torch.manual_seed(0)
    weight = torch.randn(8, 16)
    if rank in holders:
        dist.all_reduce(weight, group=holder_group)

    with suspend_distributed_timeout(dist.group.WORLD):
        if rank == holders[0]:
            save(weight)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
