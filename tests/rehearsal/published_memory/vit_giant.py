"""timm's ViT-g/14 of DINOv2 with 45 classes, written out, in bfloat16, every block checkpointed: 32 pictures of 224 pixels."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WIDTH, LAYERS, HEADS, PATCH, PIXELS, BATCH, INNER = 1536, 40, 24, 14, 224, 32, 8192


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens):
        parts = self.inputs(tokens).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts.unbind(0))
        return self.output(mixed.transpose(1, 2).reshape(tokens.shape))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = nn.Linear(WIDTH, INNER)
        self.output = nn.Linear(INNER // 2, WIDTH)

    def forward(self, tokens):
        gate, values = self.inputs(tokens).chunk(2, dim=-1)
        return self.output(functional.silu(gate) * values)


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((WIDTH,), 1e-5))

    def forward(self, tokens):
        return tokens * self.gamma


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(WIDTH, eps=1e-6), Attention(), Scale())
        self.perceptron = nn.Sequential(nn.LayerNorm(WIDTH, eps=1e-6), Perceptron(), Scale())

    def forward(self, tokens):
        tokens = tokens + self.attention(tokens)
        return tokens + self.perceptron(tokens)


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.summary = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(torch.zeros(1, (PIXELS // PATCH) ** 2 + 1, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, 45)

    def forward(self, pictures):
        patches = self.patches(pictures).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.summary.expand(len(pictures), -1, -1), patches], dim=1)
        tokens = tokens + self.places
        for block in self.blocks:
            tokens = checkpoint(block, tokens, use_reentrant=True)
        return self.head(self.norm(tokens)[:, 0])


model = Vision().bfloat16().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0, fused=True)
model.train()
for _ in range(3):
    pictures = torch.randn(BATCH, 3, PIXELS, PIXELS).bfloat16()
    labels = torch.randint(45, (BATCH,))
    loss = functional.cross_entropy(model(pictures.cuda()), labels.cuda())
    loss.backward()
    print(loss.item())
    optimizer.step()
    optimizer.zero_grad()
