"""A Python float is handed to every replica as it is.

runs-on: emulated-dp
ranks: 2
expect: success
"""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 4)

    def forward(self, features, temperature):
        return self.head(features) / temperature


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parallel = nn.DataParallel(Classifier().to(device))
    batch = torch.randn(6, 8, device=device)
    logits = parallel(batch, temperature=0.5)
    print(logits.shape)


if __name__ == "__main__":
    main()
