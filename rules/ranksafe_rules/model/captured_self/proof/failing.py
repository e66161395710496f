"""A hook that captured the module writes to the original; the replica never sees what it kept.

runs-on: emulated-dp
ranks: 2
expect: exception AttributeError: 'Classifier' object has no attribute 'features'
frame: return self.head(self.features)
"""

from functools import partial

import torch
from torch import nn


def keep_features(owner, layer, inputs, output):
    owner.features = output


class Classifier(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.encoder = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)
        self.encoder.register_forward_hook(partial(keep_features, self))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.encoder(x)
        return self.head(self.features)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.DataParallel(Classifier(width=8).to(device))
    logits = model(torch.randn(4, 8, device=device))
    logits.sum().backward()
    print("logits:", tuple(logits.shape))


if __name__ == "__main__":
    main()
