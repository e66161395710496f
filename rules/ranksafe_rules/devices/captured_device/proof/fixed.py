r"""The device is asked of the input, which DataParallel has put on the replica's GPU.

runs-on: emulated-dp
ranks: 2
expect: output output: \(4, 3, 8\)
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
        order = torch.arange(x.size(1), device=x.device)
        return self.output(x + self.positions(order))


def main() -> None:
    model = nn.DataParallel(Positioned(width=8).cuda())
    output = model(torch.randn(4, 3, 8).cuda())
    output.sum().backward()
    print("output:", tuple(output.shape))


if __name__ == "__main__":
    main()
