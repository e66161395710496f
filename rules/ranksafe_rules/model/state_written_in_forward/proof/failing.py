"""A counter kept on the module is written to replicas that are thrown away, so it stays 0.

runs-on: emulated-dp
ranks: 2
expect: output steps seen: 0
"""

import torch
from torch import nn


class WarmedUp(nn.Module):
    def __init__(self, width: int, warmup: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.warmup = warmup
        self.steps = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return self.linear(x) * min(1.0, self.steps / self.warmup)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.DataParallel(WarmedUp(width=8, warmup=10).to(device))
    for _ in range(3):
        model(torch.randn(4, 8, device=device)).sum().backward()
    print("steps seen:", model.module.steps)


if __name__ == "__main__":
    main()
