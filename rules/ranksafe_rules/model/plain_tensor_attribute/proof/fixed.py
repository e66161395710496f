r"""A buffer is copied to every replica's GPU; persistent=False keeps old checkpoints loadable.

runs-on: emulated-dp
ranks: 2
expect: output scaled: \(4, 8\)
"""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.register_buffer("scale", torch.linspace(0.1, 1.0, width).cuda(), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.scale


def main() -> None:
    model = nn.DataParallel(Scaled(width=8).cuda())
    scaled = model(torch.randn(4, 8).cuda())
    scaled.sum().backward()
    print("scaled:", tuple(scaled.shape))


if __name__ == "__main__":
    main()
