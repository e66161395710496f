"""A tensor kept as a plain attribute stays on the first GPU; the second replica multiplies by it.

runs-on: emulated-dp
ranks: 2
expect: exception RuntimeError: Expected all tensors to be on the same device
frame: return self.linear(x) * self.scale
"""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale = torch.linspace(0.1, 1.0, width).cuda()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.scale


def main() -> None:
    model = nn.DataParallel(Scaled(width=8).cuda())
    scaled = model(torch.randn(4, 8).cuda())
    scaled.sum().backward()
    print("scaled:", tuple(scaled.shape))


if __name__ == "__main__":
    main()
