"""A rank that cannot read its shard tells the others through an all_reduce, and all ranks exit at the same place.

source: https://github.com/tier4/Diffusion-Planner/pull/336
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import argparse
import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=Path, default=Path("no_such_folder"))
    return parser.parse_args()


def read_shard(folder: Path, rank: int) -> torch.Tensor | None:
    if rank == 0:
        return torch.ones(4)
    try:
        return torch.load(folder / f"shard_{rank}.pt")
    except OSError as error:
        print(f"rank {rank}: {error}", flush=True)
        return None


def any_rank(condition: bool) -> bool:
    """Whether the condition holds on any rank."""
    flag = torch.tensor([int(condition)])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return flag.item() > 0


def main() -> None:
    args = parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    shard = read_shard(args.shards, dist.get_rank())
    if any_rank(shard is None):
        if dist.get_rank() == 0:
            print("a shard is missing; all ranks leave", flush=True)
        dist.destroy_process_group()
        sys.exit(0)
    total = shard.sum()
    dist.all_reduce(total)
    print(f"total {total.item()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
