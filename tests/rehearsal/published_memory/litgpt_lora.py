"""Llama 2 7B with adapters on queries and values as lit-gpt trained it: bfloat16, 1304 tokens, chunks of 128 logits.

Queries, keys and values are one layer; its adapters' result is filled up with zeros for the keys. The tables of rotations
are in float16, so what is rotated is in float32 for a moment.
"""

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional

LENGTH, WIDTH, LAYERS, HEADS, INNER, VOCABULARY = 1304, 4096, 32, 32, 11008, 32000
RANK, CHUNK, ACCUMULATED = 8, 128, 2
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, required=True)
given = parser.parse_args()


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, hidden: Tensor) -> Tensor:
        mean = torch.mean(hidden * hidden, dim=-1, keepdim=True)
        return self.weight * (hidden * torch.rsqrt(mean + 1e-5))


class Adapted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.whole = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.down = nn.Parameter(torch.zeros(2 * RANK, WIDTH))
        self.up = nn.Parameter(torch.zeros(2 * WIDTH, RANK))

    def forward(self, hidden: Tensor) -> Tensor:
        whole = self.whole(hidden)
        thin = functional.linear(functional.dropout(hidden, 0.05), self.down)
        wide = functional.conv1d(thin.transpose(1, 2), self.up.unsqueeze(-1), groups=2)
        wide = wide.transpose(1, 2).transpose(0, 1)
        filled = wide.new_zeros(*wide.shape[:-1], 3 * WIDTH).view(-1, 3 * WIDTH)
        columns = [*range(WIDTH), *range(2 * WIDTH, 3 * WIDTH)]
        places = torch.tensor(columns, device=wide.device)
        filled = filled.index_copy(1, places, wide.reshape(-1, 2 * WIDTH))
        return whole + filled.view(*wide.shape[:-1], 3 * WIDTH).transpose(0, 1) * 2


def rotated(heads: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    first, second = heads.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return (heads * cosines + turned * sines).type_as(heads)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.perceptron_norm = Norm(), Norm()
        self.projected = Adapted()
        self.output = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, INNER, bias=False)
        self.up = nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def attention(self, hidden: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        heads = self.projected(hidden).unflatten(2, (HEADS, 3, -1)).permute(0, 2, 3, 1, 4)
        queries, keys, values = (
            each.reshape(hidden.shape[0], HEADS, LENGTH, WIDTH // HEADS)
            for each in heads.split(1, dim=2)
        )
        # What is left to be rotated of a head is nothing, and is put together with it.
        queries, keys = (
            torch.cat((rotated(each, *tables), each[..., WIDTH // HEADS :]), dim=-1)
            for each in (queries, keys)
        )
        mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(hidden.shape))

    def forward(self, hidden: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        hidden = hidden + self.attention(self.attention_norm(hidden), tables)
        normed = self.perceptron_norm(hidden)
        return hidden + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = Norm()
        for name in ("cosines", "sines"):
            table = torch.zeros(LENGTH, WIDTH // HEADS, dtype=torch.float16)
            self.register_buffer(name, table, persistent=False)

    def forward(self, tokens: Tensor) -> list[Tensor]:
        hidden = self.tokens(tokens)
        for block in self.blocks:
            hidden = block(hidden, (self.cosines, self.sines))
        logits = [self.head(chunk) for chunk in self.norm(hidden).split(CHUNK, dim=1)]
        # Lightning's Fabric gives back float32 of a model in bfloat16.
        return [chunk.float() for chunk in logits]


def loss_of(logits: list[Tensor], targets: Tensor) -> Tensor:
    logits[-1] = logits[-1][:, :-1]
    losses = [
        functional.cross_entropy(each.flatten(0, 1), expected.flatten(), reduction="none")
        for each, expected in zip(logits, targets[:, 1:].split(CHUNK, dim=1), strict=True)
    ]
    return torch.cat(losses).mean()


torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = Model()
torch.set_default_dtype(torch.float32)
for name, parameter in model.named_parameters():
    parameter.requires_grad_(name.endswith(("projected.down", "projected.up")))
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad])
for _ in range(3):
    for _ in range(ACCUMULATED):
        tokens, targets = torch.randint(VOCABULARY, (2, given.batch, LENGTH), device="cuda")
        logits = model(tokens)
        (loss_of(logits, targets) / ACCUMULATED).backward()
    optimizer.step()
    optimizer.zero_grad()
