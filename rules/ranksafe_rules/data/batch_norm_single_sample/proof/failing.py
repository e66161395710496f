"""Three samples over two GPUs are chunks of 2 and 1, and BatchNorm cannot normalise a single sample.

runs-on: emulated-dp
ranks: 2
expect: exception ValueError: Expected more than 1 value per channel when training
frame: hidden = self.norm(self.encoder(x))
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(8, 16)
        self.norm = nn.BatchNorm1d(16)
        self.head = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.norm(self.encoder(x))
        return self.head(torch.relu(hidden))


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.DataParallel(Classifier().to(device))
    optimizer = torch.optim.Adam(model.parameters())
    dataset = TensorDataset(torch.randn(12, 8), torch.randint(0, 2, (12,)))
    for x, y in DataLoader(dataset, batch_size=3, shuffle=True):
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("trained")


if __name__ == "__main__":
    main()
