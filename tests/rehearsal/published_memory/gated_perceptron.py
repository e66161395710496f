"""A gated perceptron of three 8192 × 8192 layers in float32, split over all GPUs by Lightning Fabric, AdamW."""

import os

import lightning
import torch
from lightning.fabric.strategies import ModelParallelStrategy
from torch import nn
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn import functional
from torch.utils.data import DataLoader

WIDTH = 8192
GPUS = int(os.environ.get("WORLD_SIZE", "1"))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, WIDTH, bias=False)
        self.down = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, rows):
        return self.down(functional.silu(self.gate(rows)) * self.up(rows))


def split(model, mesh):
    plan = {"gate": ColwiseParallel(), "down": RowwiseParallel(), "up": ColwiseParallel()}
    parallelize_module(model, mesh["tensor_parallel"], plan)
    return model


strategy = ModelParallelStrategy(parallelize_fn=split) if GPUS > 1 else "auto"
fabric = lightning.Fabric(accelerator="cuda", devices=GPUS, strategy=strategy)
fabric.launch()
model = fabric.setup(Perceptron())
optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters(), lr=3e-3))
loader = fabric.setup_dataloaders(DataLoader(torch.randn(64, WIDTH), batch_size=8))
for batch in loader:
    output = model(batch)
    loss = output.sum()
    fabric.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
