"""The device remembered in __init__ is the first GPU's in every replica.

runs-on: emulated-dp
ranks: 2
expect: exception RuntimeError: Expected all tensors to be on the same device
frame: return self.output(x + self.positions(order))
"""

import torch
from torch import nn


class Positioned(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.device = torch.device("cuda:0")
        self.positions = nn.Embedding(64, width)
        self.output = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        order = torch.arange(x.size(1), device=self.device)
        return self.output(x + self.positions(order))


def main() -> None:
    model = nn.DataParallel(Positioned(width=8).cuda())
    output = model(torch.randn(4, 3, 8).cuda())
    output.sum().backward()
    print("output:", tuple(output.shape))


if __name__ == "__main__":
    main()
