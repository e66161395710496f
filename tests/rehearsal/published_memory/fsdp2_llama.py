"""Llama trained as torchtitan trains it: FSDP2, bfloat16 with float32 reductions, blocks checkpointed in some way or not.

``--as-of 2024-03``: the model returns float32, the loop keeps what it returned, and the optimizer is not fused.
"""

import argparse
import os
from collections import defaultdict

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

# Width, layers, heads, heads of keys and values, tokens, width of the perceptron.
SIZES = {
    "7b": (4096, 32, 32, 32, 32000, 11008),
    "8b": (4096, 32, 32, 8, 128256, 14336),
    "70b": (8192, 80, 64, 8, 128256, 28672),
}
parser = argparse.ArgumentParser()
parser.add_argument("--size", choices=SIZES, required=True)
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--length", type=int, required=True)
parser.add_argument(
    "--checkpoint", choices=("full", "selective", "alternate", "none"), required=True
)
parser.add_argument("--optimizer", choices=("fused", "foreach"))
parser.add_argument("--as-of", choices=("2024-03", "2024-12"), default="2024-12")
given = parser.parse_args()
WIDTH, LAYERS, HEADS, SHARED_HEADS, VOCABULARY, INNER = SIZES[given.size]
OF_HEAD = WIDTH // HEADS
IN_MARCH = given.as_of == "2024-03"


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, hidden: Tensor) -> Tensor:
        wide = hidden.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return scaled.type_as(hidden) * self.weight


def rotated(heads: Tensor, angles: Tensor) -> Tensor:
    pairs = torch.view_as_complex(heads.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * angles[:, None, :]).flatten(3).type_as(heads)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Linear(WIDTH, WIDTH, bias=False)
        self.keys = nn.Linear(WIDTH, SHARED_HEADS * OF_HEAD, bias=False)
        self.values = nn.Linear(WIDTH, SHARED_HEADS * OF_HEAD, bias=False)
        self.output = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, hidden: Tensor, angles: Tensor) -> Tensor:
        projected = (self.queries(hidden), self.keys(hidden), self.values(hidden))
        queries, keys, values = (each.unflatten(2, (-1, OF_HEAD)) for each in projected)
        queries, keys = rotated(queries, angles), rotated(keys, angles)
        if SHARED_HEADS != HEADS:
            keys, values = (
                each[:, :, :, None].expand(-1, -1, -1, HEADS // SHARED_HEADS, -1).flatten(2, 3)
                for each in (keys, values)
            )
        mixed = functional.scaled_dot_product_attention(
            *(each.transpose(1, 2) for each in (queries, keys, values)), is_causal=True
        )
        return self.output(mixed.transpose(1, 2).contiguous().flatten(2))


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, INNER, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(hidden)) * self.up(hidden))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.attention_norm = Attention(), Norm()
        self.perceptron, self.perceptron_norm = Perceptron(), Norm()

    def forward(self, hidden: Tensor, angles: Tensor) -> Tensor:
        hidden = hidden + self.attention(self.attention_norm(hidden), angles)
        return hidden + self.perceptron(self.perceptron_norm(hidden))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleDict({str(number): Block() for number in range(LAYERS)})
        self.norm = Norm()
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)
        table = torch.empty(given.length, OF_HEAD // 2, dtype=torch.complex64)
        self.register_buffer("angles", table, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.tokens(tokens)
        for block in self.layers.values():
            hidden = block(hidden, self.angles)
        logits = self.output(self.norm(hidden))
        return logits.float() if IN_MARCH else logits


KEPT = {
    torch.ops.aten.mm.default,
    torch.ops.aten._scaled_dot_product_efficient_attention.default,
    torch.ops.aten._scaled_dot_product_flash_attention.default,
    torch.ops._c10d_functional.reduce_scatter_tensor.default,
}


def contexts():
    """Attention and every second product are kept."""
    products = defaultdict(int)

    def policy(context, operator, *inputs, **options):
        if operator == torch.ops.aten.mm.default:
            products[context.is_recompute] += 1
            if products[context.is_recompute] % 2 == 0:
                return CheckpointPolicy.PREFER_RECOMPUTE
        return CheckpointPolicy.MUST_SAVE if operator in KEPT else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def made() -> nn.Module:
    with torch.device("meta"):
        model = Model()
    how = {"context_fn": contexts} if given.checkpoint == "selective" else {}
    every = {"none": LAYERS + 1, "alternate": 2}.get(given.checkpoint, 1)
    for name, block in list(model.layers.named_children())[every - 1 :: every]:
        wrapped = checkpoint_wrapper(block, preserve_rng_state=False, **how)
        model.layers.register_module(name, wrapped)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for number, block in enumerate(model.layers.values()):
        fully_shard(block, mp_policy=policy, reshard_after_forward=number < LAYERS - 1)
    fully_shard(model, mp_policy=policy)
    model.to_empty(device="cuda")
    with torch.no_grad():
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.02)
    return model


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    tokens, targets = torch.randint(VOCABULARY, (2, given.batch, given.length), device="cuda")
    logits = model(tokens)
    loss = functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
    if not IN_MARCH:
        del logits
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    optimizer.step()
    optimizer.zero_grad()


dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = made()
kind = given.optimizer or ("foreach" if IN_MARCH else "fused")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, **{kind: True})
for _ in range(3):
    step(model, optimizer)
dist.destroy_process_group()
