"""The losses of two replicas are gathered into a vector, of which backward() takes no gradients.

runs-on: emulated-dp
ranks: 2
expect: exception RuntimeError: grad can be implicitly created only for scalar outputs
frame: loss.backward()
"""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 4)

    def forward(self, features, labels):
        return nn.functional.cross_entropy(self.head(features), labels)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parallel = nn.DataParallel(Classifier().to(device))
    features = torch.randn(6, 8, device=device)
    labels = torch.randint(4, (6,), device=device)
    loss = parallel(features, labels)
    loss.backward()
    print("trained")


if __name__ == "__main__":
    main()
