"""Exports a fully sharded model; all processes call get_model_state_dict, the main one writes the file.

source: https://github.com/pytorch/pytorch/pull/124741
bug: RS402
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import argparse
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def is_main_process() -> bool:
    return int(os.environ.get("RANK", "0")) == 0


def build_model(layers: int, width: int) -> nn.Module:
    mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(layers)))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def export(model: nn.Module, output: Path) -> None:
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(model, options=options)
    if is_main_process():
        output.mkdir(parents=True, exist_ok=True)
        torch.save(weights, output / "model.pt")
        print(f"exported {len(weights)} tensors", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    model = build_model(layers=2, width=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(args.steps):
        model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    export(model, args.output / f"export-{os.environ['MASTER_PORT']}")
    dist.barrier()  # nobody leaves before the file is complete
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
