r"""A subclass overrides forward: every replica runs its own copy.

runs-on: emulated-dp
ranks: 2
expect: output encoded: \(4, 8\)
"""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class ScaledEncoder(Encoder):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * super().forward(x)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.DataParallel(ScaledEncoder(width=8).to(device))
    encoded = model(torch.randn(4, 8, device=device))
    encoded.sum().backward()
    print("encoded:", tuple(encoded.shape))


if __name__ == "__main__":
    main()
