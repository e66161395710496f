"""Five samples over four GPUs are chunks of 2, 2 and 1: one GPU never works.

runs-on: emulated-dp
ranks: 4
expect: output rows per replica: .2, 2, 1]
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class CountingLinear(nn.Linear):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return super().forward(x), torch.tensor([len(x)], device=x.device)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.DataParallel(CountingLinear(8, 2).to(device), device_ids=[0, 1, 2, 3])
    dataset = TensorDataset(torch.randn(20, 8), torch.randint(0, 2, (20,)))
    for x, y in DataLoader(dataset, batch_size=5):
        output, rows = model(x.to(device))
        nn.functional.cross_entropy(output, y.to(device)).backward()
        print("rows per replica:", rows.tolist())


if __name__ == "__main__":
    main()
