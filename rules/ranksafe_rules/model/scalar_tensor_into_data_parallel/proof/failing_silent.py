"""A temperature in a tensor of length one makes nn.DataParallel run one replica: half of the batch gets no answer.

runs-on: emulated-dp
ranks: 2
expect: output 6 rows in, 3 rows out
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
    parallel = nn.DataParallel(Classifier())
    batch = torch.randn(6, 8)
    logits = parallel(batch, torch.tensor([0.5]))
    print(f"{len(batch)} rows in, {len(logits)} rows out")


if __name__ == "__main__":
    main()
