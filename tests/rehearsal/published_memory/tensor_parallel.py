"""Eight perceptrons 8192 wide, sharded by FSDP2 in one dimension of a mesh and by their columns in the other (two)."""

import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn import functional

WIDTH, INNER = 8192, 28672


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden + self.down(functional.silu(self.up(hidden)))


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
shape = (int(os.environ["WORLD_SIZE"]) // 2, 2)
mesh = init_device_mesh("cuda", shape, mesh_dim_names=("shards", "columns"))
model = nn.Sequential(*(Block() for _ in range(8))).cuda()
for block in model:
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    parallelize_module(block, mesh["columns"], plan)
    fully_shard(block, mesh=mesh["shards"])
fully_shard(model, mesh=mesh["shards"])
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for _ in range(3):
    model(torch.randn(4, 2048, WIDTH, device="cuda")).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
