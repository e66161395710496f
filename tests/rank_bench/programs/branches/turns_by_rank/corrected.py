"""Lets the ranks load their shard in turn: each turn ends with a barrier in which all ranks take part.

source: https://github.com/THUDM/slime/pull/447
bug: RS401
ranks: 3
expect: clean
decidable: yes
shows: fine
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn


def write_shards(directory: Path, count: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        torch.save(torch.full((16, 4), float(index)), directory / f"shard{index}.pt")


def load_shard(directory: Path, rank: int) -> torch.Tensor:
    return torch.load(directory / f"shard{rank}.pt", weights_only=True)


def load_in_turn(directory: Path, rank: int, world_size: int) -> torch.Tensor:
    """Keep the host's memory from holding the unpacked shards of all ranks at once."""
    for turn in range(world_size):
        if turn == rank:
            shard = load_shard(directory, rank)
        dist.barrier()
    return shard


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    world_size = dist.get_world_size()
    directory = Path(tempfile.mkdtemp()) / "shards"
    write_shards(directory, world_size)

    data = load_in_turn(directory, rank, world_size)
    model = nn.Linear(4, 1)
    for batch in data.split(8):
        model(batch).pow(2).mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
    norm = model.weight.grad.norm().item()
    print(f"rank {rank}: gradient norm {norm:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
