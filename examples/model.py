"""A mixture of two branches, replicated with nn.DataParallel. Right on one GPU, wrong on two."""

import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.left = nn.Linear(width, width)
        self.right = nn.Linear(width, width)
        # The replica on cuda:1 would call the branches of the original on cuda:0.
        self.branches = {"left": self.run_left, "right": self.run_right}
        # Neither a parameter nor a buffer: replicas share the tensor on cuda:0.
        self.offset = torch.zeros(width).cuda()

    def run_left(self, inputs):
        return self.left(inputs)

    def run_right(self, inputs):
        return self.right(inputs)

    def forward(self, inputs, branch):
        noise = torch.randn(inputs.size(0), 1, device="cuda:0")
        return self.branches[branch](inputs) + self.offset + noise


def main():
    model = nn.DataParallel(Mixture(8).cuda())
    batch = torch.randn(6, 8).cuda()
    print(model(batch, "left").sum().item())


if __name__ == "__main__":
    main()
