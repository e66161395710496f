r"""The value flows through the forward pass; nothing has to remember the module.

runs-on: emulated-dp
ranks: 2
expect: output logits: \(4, 2\)
"""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.encoder = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = self.encoder(x)
        return self.head(features)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.DataParallel(Classifier(width=8).to(device))
    logits = model(torch.randn(4, 8, device=device))
    logits.sum().backward()
    print("logits:", tuple(logits.shape))


if __name__ == "__main__":
    main()
