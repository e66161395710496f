"""What nn.DataParallel does with arguments of fewer pieces than the batch, with too small a batch, with state."""

import sys

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.calls = 0
        self.rows = 0

    def forward(self, inputs, scale=1.0):
        self.rows = inputs.size(0)
        return self.linear(inputs) * scale + self.rows


class Counting(Scaled):
    def forward(self, inputs, scale=1.0):  # counted here
        self.calls += 1
        return super().forward(inputs, scale)


kind = sys.argv[1]
model = nn.DataParallel((Counting() if kind == "counts" else Scaled()).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for size in [1, 1] if kind == "small" else [6, 5, 1]:
    inputs = torch.randn(size, 4).cuda()
    if kind == "drops":
        outputs = model(scale=torch.tensor([0.5]).cuda(), inputs=inputs)  # dropped here
    else:
        outputs = model(inputs=inputs, scale=0.5)  # called here
    outputs.sum().backward()
    optimizer.step()
