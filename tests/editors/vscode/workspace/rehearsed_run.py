"""A plain tensor stays on the first device while DataParallel copies the module."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = torch.ones(4, device="cuda")

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.linear(batch) * self.scale


if __name__ == "__main__":
    model = nn.DataParallel(Scaled().cuda())
    print(model(torch.ones(8, 4, device="cuda")).sum().item())
