r"""A replica reaches its parameters by name, so their device is known.

runs-on: emulated-dp
ranks: 2
expect: output scores: \(4, 6, 3\)
"""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocabulary: int, width: int, tags: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(512, width)
        self.output = nn.Linear(width, tags)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        device = self.embedding.weight.device
        positions = torch.arange(tokens.size(1), device=device)
        return self.output(self.embedding(tokens) + self.positions(positions))


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.DataParallel(Tagger(vocabulary=100, width=8, tags=3).to(device))
    scores = model(torch.randint(0, 100, (4, 6), device=device))
    scores.sum().backward()
    print("scores:", tuple(scores.shape))


if __name__ == "__main__":
    main()
