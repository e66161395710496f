"""A module that keeps tensors as plain attributes, trained by DataParallel."""

import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.layer = nn.Linear(size, size)
        self.mask = torch.ones(size).cuda()
        self.scale = torch.full((size,), 0.5).cuda()

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.layer(batch) * self.mask * self.scale


model = nn.DataParallel(Masked(8))
