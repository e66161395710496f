"""The collectives that modules use."""

import torch
import torch.distributed as dist


def all_gather(tensor, group=None):
    """Stack the tensors of all ranks."""
    gathered = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, tensor, group=group)
    return torch.stack(gathered)
