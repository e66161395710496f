"""Validation on one rank between two epochs."""

import torch
from torch import nn


@torch.no_grad()
def validation_run(rank: int, model: nn.Module, data: torch.Tensor, epoch: int) -> None:
    """Print the error of the model on held-out events; the other ranks have nothing to do."""
    if rank != 0:
        return
    model.eval()
    losses = []
    for elements in data.split(8):
        prediction = model(elements)
        losses.append((prediction - elements[:, :3]).pow(2).mean())
    model.train()
    print(f"epoch {epoch}: validation loss {torch.stack(losses).mean().item():.4f}", flush=True)
