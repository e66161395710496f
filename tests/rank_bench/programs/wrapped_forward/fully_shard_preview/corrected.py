"""Trains a fully sharded model and draws a preview on all ranks; the first rank prints it.

source: https://github.com/pytorch/pytorch/issues/152964
bug: RS403
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Denoiser(nn.Module):
    def __init__(self, width: int = 16, depth: int = 2) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + torch.tanh(block(x))
        return self.out(x)


def build_model() -> nn.Module:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = Denoiser()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    noise = torch.randn(2, 16)

    for step in range(4):
        clean = torch.randn(8, 16)
        noisy = clean + 0.1 * torch.randn_like(clean)
        loss = (model(noisy) - clean).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 2 == 0:
            with torch.no_grad():
                preview = model(noise)
            if dist.get_rank() == 0:
                print(f"step {step}: preview {preview.abs().mean().item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
