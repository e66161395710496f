r"""A dictionary of method names: every replica looks its own method up.

runs-on: emulated-dp
ranks: 2
expect: output mixed: \(4, 32\)
"""

import torch
from torch import nn


class Mix(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.narrow = nn.Linear(width, width)
        self.wide = nn.Linear(width, 4 * width)
        self.operations = {"narrow": "run_narrow", "wide": "run_wide"}

    def run_narrow(self, x: torch.Tensor) -> torch.Tensor:
        return self.narrow(x).relu()

    def run_wide(self, x: torch.Tensor) -> torch.Tensor:
        return self.wide(x).relu()

    def forward(self, x: torch.Tensor, kind: str) -> torch.Tensor:
        return getattr(self, self.operations[kind])(x)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.DataParallel(Mix(width=8).to(device))
    mixed = model(torch.randn(4, 8, device=device), kind="wide")
    mixed.sum().backward()
    print("mixed:", tuple(mixed.shape))


if __name__ == "__main__":
    main()
