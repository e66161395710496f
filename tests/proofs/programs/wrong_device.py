"""Tensors of different replicas do not mix, those of one replica do.

runs-on: emulated-dp
ranks: 2
expect: success
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("shift", torch.ones(4))
        self.plain = torch.ones(4)
        self.device = torch.device("cuda:0")
        self.method = self.through_the_original

    def through_the_original(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)

    def forward(self, x: torch.Tensor, way: str) -> torch.Tensor:
        hidden = self.linear(x) + self.shift
        ways = {
            "plain tensor": lambda: hidden + self.plain,
            "bound method": lambda: self.method(hidden),
            "captured device": lambda: hidden + torch.zeros(4, device=self.device),
            "fixed device": lambda: hidden + torch.zeros(4).to("cuda:0"),
            "fixed index": lambda: hidden + torch.zeros(4).cuda(0),
            "moved": lambda: hidden + self.plain.to(hidden.device),
            "like another": lambda: hidden + torch.zeros_like(hidden),
            "current device": lambda: hidden + torch.zeros(4, device="cuda").cuda(),
            "scalar": lambda: hidden * torch.tensor(2.0),
        }
        return ways[way]()


def main() -> None:
    net = nn.DataParallel(Net().cuda())
    x = torch.randn(4, 4).cuda()
    for way in ("moved", "like another", "current device", "scalar"):
        net(x, way).sum().backward()
    for way in ("plain tensor", "bound method", "captured device", "fixed device", "fixed index"):
        try:
            net(x, way)
        except RuntimeError as error:
            text = str(error)
        else:
            raise AssertionError(way)
        assert text.startswith("Caught RuntimeError in replica 1 on device 1."), way
        assert "same device, but found at least two devices, cuda:0 and cuda:1!" in text, way


if __name__ == "__main__":
    main()
