"""In three steps on two GPUs, all parameters are copied three times.

runs-on: emulated-dp
ranks: 2
expect: output computed with 4 copies of the parameters in 3 steps
"""

import torch
from torch import nn


class RecordingLinear(nn.Linear):
    """Keeps the weights that it computed with, so that none of them can take another one's address."""

    used: dict[int, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.used[self.weight.data_ptr()] = self.weight
        return super().forward(x)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.DataParallel(RecordingLinear(8, 2).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(torch.randn(4, 8, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"computed with {len(RecordingLinear.used)} copies of the parameters in 3 steps")


if __name__ == "__main__":
    main()
