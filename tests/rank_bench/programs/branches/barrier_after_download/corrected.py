"""Rank 0 fetches the model repository before the barrier and the others after it; each arm has one.

source: https://github.com/huggingface/transformers-bloom-inference/pull/40
bug: RS401
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


def setup() -> tuple[int, int]:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def snapshot_download(repo: Path) -> None:
    repo.mkdir(parents=True, exist_ok=True)
    torch.save(torch.ones(8, 8), repo / "weights.pt")


def get_repo_root(cache_dir: Path, model_name: str, rank: int) -> Path:
    repo = cache_dir / model_name
    if rank == 0:
        snapshot_download(repo)
        dist.barrier()
    else:
        dist.barrier()
    return repo


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_name", default="tiny-bloom")
    parser.add_argument("--cache_dir", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--batches", type=int, default=3)
    args = parser.parse_args()

    rank, world_size = setup()
    port = os.environ["MASTER_PORT"]
    repo = get_repo_root(args.cache_dir / port, args.model_name, rank)

    # Tensor parallel inference: each rank holds a slice and the partial outputs are summed.
    for _ in range(args.batches):
        hidden = torch.ones(4, 8) / world_size
        dist.all_reduce(hidden)
    if rank == 0:
        print(f"{repo.name}: {hidden.mean().item():.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
