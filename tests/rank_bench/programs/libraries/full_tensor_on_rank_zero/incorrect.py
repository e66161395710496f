"""Collects the weights for an inference server; only rank 0 calls full_tensor on the sharded parameters.

source: https://github.com/areal-project/AReaL/pull/187
bug: RS401
ranks: 2
expect: RS401
line: weights[name] = param.full_tensor()
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Shard, distribute_module, distribute_tensor


def shard_rows(name: str, module: nn.Module, mesh: DeviceMesh) -> None:
    for key, param in list(module.named_parameters(recurse=False)):
        module.register_parameter(key, nn.Parameter(distribute_tensor(param, mesh, [Shard(0)])))


def collect_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    """The whole parameters, for the rank that talks to the inference server."""
    weights = {}
    for name, param in model.named_parameters():
        if dist.get_rank() == 0:
            weights[name] = param.full_tensor()
    return weights


def upload(weights: dict[str, torch.Tensor]) -> int:
    return sum(weight.numel() for weight in weights.values())


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 4))
    distribute_module(model, mesh, shard_rows)
    weights = collect_weights(model)
    if dist.get_rank() == 0:
        print(f"uploaded {upload(weights)} numbers", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
