"""Helpers return early where there is no process group or only one rank, which is so on all ranks or on none.

source: https://github.com/pytorch/vision/pull/7636
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def is_dist_avail_and_initialized() -> bool:
    if not dist.is_available():
        return False
    return dist.is_initialized()


def get_world_size() -> int:
    if not is_dist_avail_and_initialized():
        return 1
    return dist.get_world_size()


def reduce_dict(values: dict[str, torch.Tensor], average: bool = True) -> dict[str, torch.Tensor]:
    """The values of all ranks, added up or averaged."""
    world_size = get_world_size()
    if world_size < 2:
        return values
    with torch.inference_mode():
        names = sorted(values)
        stacked = torch.stack([values[name] for name in names])
        dist.all_reduce(stacked)
        if average:
            stacked /= world_size
        return dict(zip(names, stacked, strict=True))


def reduce_across_processes(value: float) -> torch.Tensor:
    tensor = torch.tensor(value)
    if not is_dist_avail_and_initialized():
        return tensor
    dist.barrier()
    dist.all_reduce(tensor)
    return tensor


def main() -> None:
    if "RANK" in os.environ:
        limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        dist.init_process_group("gloo", timeout=limit)
    model = nn.Linear(8, 2)
    output = model(torch.randn(4, 8))
    losses = {"box": output[:, 0].abs().mean(), "label": output[:, 1].abs().mean()}
    reduced = reduce_dict({name: loss.detach() for name, loss in losses.items()})
    images = reduce_across_processes(4.0)
    rounded = {name: round(loss.item(), 3) for name, loss in reduced.items()}
    print(rounded, images.item(), flush=True)
    if is_dist_avail_and_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
