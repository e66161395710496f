"""Saving and loading of training state."""

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def save_checkpoint(
    path: Path, model: DistributedDataParallel, optimizer: torch.optim.Optimizer, epoch: int
) -> None:
    """Write the state on rank 0; no rank goes on before the file is there."""
    if dist.get_rank() == 0:
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "epoch": epoch}, path)
    dist.barrier()


def load_checkpoint(path: Path, model: nn.Module) -> dict[str, Any]:
    """Read what save_checkpoint wrote; every rank reads the file by itself."""
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
    return state
