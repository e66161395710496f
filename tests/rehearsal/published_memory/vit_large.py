"""torchvision's ViT-L/16 with 10 classes, written out, finetuned by Lightning Fabric on pictures of 224 pixels."""

import argparse

import torch
from lightning import Fabric
from older_adam import OlderAdam
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

WIDTH, LAYERS, HEADS, PATCH, PIXELS = 1024, 24, 16, 16, 224
parser = argparse.ArgumentParser()
parser.add_argument("--precision", choices=("32-true", "16-mixed", "bf16-true"), required=True)
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--optimizer", choices=("adam", "sgd"), default="adam")
parser.add_argument("--as-of", choices=("today", "2023-06"), default="today")
given = parser.parse_args()

attend = functional.scaled_dot_product_attention


def attend_by_rows(*parts, **named):
    """As flash attention 1 had it, with which torch built until 2.2: what it returns lies row after row, as (batch, length,
    heads, width), whatever the queries do, so that MultiheadAttention, which has the length first, copies it."""
    return attend(*parts, **named).transpose(1, 2).contiguous().transpose(1, 2)


if given.as_of == "2023-06" and given.precision != "32-true":
    functional.scaled_dot_product_attention = attend_by_rows


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention = nn.LayerNorm(WIDTH, eps=1e-6)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.before_perceptron = nn.LayerNorm(WIDTH, eps=1e-6)
        self.perceptron = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, tokens):
        normal = self.before_attention(tokens)
        attended, _ = self.attention(normal, normal, normal, need_weights=False)
        attended = attended + tokens
        return attended + self.perceptron(self.before_perceptron(attended))


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.summary = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(torch.zeros(1, (PIXELS // PATCH) ** 2 + 1, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, pictures):
        patches = self.patches(pictures).flatten(2).permute(0, 2, 1)
        tokens = torch.cat([self.summary.expand(len(pictures), -1, -1), patches], dim=1)
        return self.head(self.norm(self.blocks(tokens + self.places))[:, 0])


class Pictures(Dataset):
    def __len__(self):
        return 12 * given.batch

    def __getitem__(self, index):
        return torch.rand(3, PIXELS, PIXELS), index % 10


fabric = Fabric(accelerator="cuda", devices=1, precision=given.precision)
fabric.launch()
loader = fabric.setup_dataloaders(DataLoader(Pictures(), batch_size=given.batch))
model = Vision()
Adam = OlderAdam if given.as_of == "2023-06" else torch.optim.Adam
if given.optimizer == "adam":
    optimizer = Adam(model.parameters(), lr=5e-5)
else:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
model, optimizer = fabric.setup(model, optimizer)
for index, (features, targets) in enumerate(loader):
    model.train()
    logits = model(features)
    loss = functional.cross_entropy(logits, targets) / given.accumulate
    if given.accumulate == 1:
        optimizer.zero_grad()
    fabric.backward(loss)
    if index % given.accumulate == 0:
        optimizer.step()
        if given.accumulate > 1:
            optimizer.zero_grad()
    model.eval()
