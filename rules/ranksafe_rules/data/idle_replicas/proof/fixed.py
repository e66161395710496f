"""Eight samples over four GPUs are four chunks of 2.

runs-on: emulated-dp
ranks: 4
expect: output rows per replica: .2, 2, 2, 2]
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class CountingLinear(nn.Linear):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return super().forward(x), torch.tensor([len(x)], device=x.device)


def main() -> None:
    model = nn.DataParallel(CountingLinear(8, 2), device_ids=[0, 1, 2, 3])
    dataset = TensorDataset(torch.randn(20, 8), torch.randint(0, 2, (20,)))
    for x, y in DataLoader(dataset, batch_size=8):
        output, rows = model(x)
        nn.functional.cross_entropy(output, y).backward()
        print("rows per replica:", rows.tolist())


if __name__ == "__main__":
    main()
