"""A dictionary of bound methods makes the second replica compute with the first GPU's weights.

runs-on: emulated-dp
ranks: 2
expect: exception RuntimeError: Expected all tensors to be on the same device
frame: return self.wide(x).relu()
"""

import torch
from torch import nn


class Mix(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.narrow = nn.Linear(width, width)
        self.wide = nn.Linear(width, 4 * width)
        self.operations = {"narrow": self.run_narrow, "wide": self.run_wide}

    def run_narrow(self, x: torch.Tensor) -> torch.Tensor:
        return self.narrow(x).relu()

    def run_wide(self, x: torch.Tensor) -> torch.Tensor:
        return self.wide(x).relu()

    def forward(self, x: torch.Tensor, kind: str) -> torch.Tensor:
        return self.operations[kind](x)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.DataParallel(Mix(width=8).to(device))
    mixed = model(torch.randn(4, 8, device=device), kind="wide")
    mixed.sum().backward()
    print("mixed:", tuple(mixed.shape))


if __name__ == "__main__":
    main()
