"""A patched forward is bound to the original module: the second replica runs with the first GPU's weights.

runs-on: emulated-dp
ranks: 2
expect: exception RuntimeError: Expected all tensors to be on the same device
frame: return 0.5 * self.linear(x)
"""

import types

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def scaled_forward(self: Encoder, x: torch.Tensor) -> torch.Tensor:
    return 0.5 * self.linear(x)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    encoder = Encoder(width=8).to(device)
    encoder.forward = types.MethodType(scaled_forward, encoder)
    model = nn.DataParallel(encoder)
    encoded = model(torch.randn(4, 8, device=device))
    encoded.sum().backward()
    print("encoded:", tuple(encoded.shape))


if __name__ == "__main__":
    main()
