"""Sums statistics and shares the scaler in one order on the main rank and in the other on the rest.

source: https://github.com/NVIDIA/apex/pull/18
bug: RS401
ranks: 2
expect: RS401
line: dist.all_reduce(moments)  # the sums first, they are needed below
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def is_main_process() -> bool:
    return dist.get_rank() == 0


def local_moments(data: torch.Tensor) -> torch.Tensor:
    return torch.stack([data.sum(), data.pow(2).sum(), torch.tensor(float(data.numel()))])


def normalisation(data: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and deviation over all ranks, and the loss scale that the main rank chose."""
    moments = local_moments(data)
    if is_main_process():
        scale = torch.tensor([2.0**10])
        dist.all_reduce(moments)  # the sums first, they are needed below
        dist.broadcast(scale, src=0)
        print(f"scale {scale.item():.0f}")
    else:
        scale = torch.empty(1)
        dist.broadcast(scale, src=0)
        dist.all_reduce(moments)
    mean = moments[0] / moments[2]
    deviation = (moments[1] / moments[2] - mean**2).clamp_min(1e-6).sqrt()
    return torch.stack([mean, deviation]), scale


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(dist.get_rank())
    data = torch.randn(64, 8)
    statistics, scale = normalisation(data)

    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in ((data - statistics[0]) / statistics[1]).split(16):
        loss = model(batch).pow(2).mean()
        (loss * scale.item()).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size() * scale.item()
        optimizer.step()
        optimizer.zero_grad()
    if is_main_process():
        print(f"loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
