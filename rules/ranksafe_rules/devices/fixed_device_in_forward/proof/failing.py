"""The first hidden state is made on cuda:0, whichever GPU the replica works on.

runs-on: emulated-dp
ranks: 2
expect: exception RuntimeError: Expected all tensors to be on the same device
frame: state = torch.tanh(self.input(x[:, step]) + self.recurrent(state))
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
        state = torch.zeros(x.size(0), self.width, device="cuda:0")
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
