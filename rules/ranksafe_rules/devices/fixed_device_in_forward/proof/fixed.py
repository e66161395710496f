r"""The first hidden state is made where the input is.

runs-on: emulated-dp
ranks: 2
expect: output state: \(4, 8\)
"""

import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.input = nn.Linear(width, width)
        self.recurrent = nn.Linear(width, width)
        self.width = width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(x.size(0), self.width, device=x.device)
        for step in range(x.size(1)):
            state = torch.tanh(self.input(x[:, step]) + self.recurrent(state))
        return state


def main() -> None:
    model = nn.DataParallel(Recurrent(width=8).cuda())
    state = model(torch.randn(4, 3, 8).cuda())
    state.sum().backward()
    print("state:", tuple(state.shape))


if __name__ == "__main__":
    main()
