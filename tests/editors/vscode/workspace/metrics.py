"""Values of all ranks together."""

import torch
import torch.distributed as dist


def mean_over_ranks(value: torch.Tensor) -> float:
    total = value.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()
