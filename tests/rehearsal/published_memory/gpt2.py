"""GPT-2 124M as nanoGPT trains it: 12 sequences of 1024 tokens, bfloat16 autocast, fused AdamW, clipped gradients."""

import torch
from torch import Tensor, nn
from torch.nn import functional

BATCH, LENGTH = 12, 1024
VOCABULARY, LAYERS, HEADS, WIDTH = 50304, 12, 12, 768


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.output = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        heads = [
            part.unflatten(2, (HEADS, -1)).transpose(1, 2)
            for part in self.inputs(hidden).split(WIDTH, dim=2)
        ]
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.output(mixed.transpose(1, 2).contiguous().flatten(2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(WIDTH, bias=False), Attention())
        self.perceptron = nn.Sequential(
            nn.LayerNorm(WIDTH, bias=False),
            nn.Linear(WIDTH, 4 * WIDTH, bias=False),
            nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH, bias=False),
        )

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = hidden + self.attention(hidden)
        return hidden + self.perceptron(hidden)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.tokens.weight = self.head.weight

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        hidden = self.tokens(tokens) + self.positions(
            torch.arange(tokens.size(1), device=tokens.device)
        )
        logits = self.head(self.norm(self.blocks(hidden)))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def made() -> tuple[nn.Module, torch.optim.Optimizer]:
    with torch.device("cuda:0"):
        model = Model()
    return model, torch.optim.AdamW(model.parameters(), lr=6e-4, fused=True)


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    tokens, targets = torch.randint(VOCABULARY, (2, BATCH, LENGTH), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(tokens, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


if __name__ == "__main__":
    trained = made()
    for _ in range(3):
        step(*trained)
