"""Asks for the whole state of the optimizer of a sharded model where the first rank saves it.

source: https://github.com/EleutherAI/bergson/pull/380
bug: RS402
ranks: 2
expect: RS402
line: state = get_optimizer_state_dict(model, optimizer, options=FULL_STATE)
decidable: yes
shows: hang
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

FULL_STATE = StateDictOptions(full_state_dict=True, cpu_offload=True)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, hidden):
        return hidden + self.mlp(self.norm(hidden))


def sharded_model(width=8, depth=2):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(*[Block(width) for _ in range(depth)])
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def save_optimizer_state(model, optimizer, path):
    """The second moments of Adam are what the influence of samples is computed with."""
    if dist.get_rank() == 0:
        state = get_optimizer_state_dict(model, optimizer, options=FULL_STATE)
        torch.save(state, path)


def train(model, optimizer, steps=3):
    for step in range(steps):
        loss = model(torch.randn(4, 8)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.detach()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(dist.get_rank())
    model = sharded_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss = train(model, optimizer)
    with tempfile.TemporaryDirectory() as name:
        save_optimizer_state(model, optimizer, Path(name) / "optimizer.pt")
    dist.all_reduce(loss)
    if dist.get_rank() == 0:
        print(f"loss {loss.item() / dist.get_world_size():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
