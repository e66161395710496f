"""Every rank wants the whole memory bank and gathers it to itself, so the ranks name different destinations.

source: https://github.com/pytorch/pytorch/pull/65671
bug: RS415
ranks: 2
expect: RS415
line: dist.gather(embeddings, gather_list=bank, dst=rank)
decidable: yes
shows: hang
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=4)
    return parser.parse_args()


def memory_bank(embeddings: torch.Tensor, rank: int, world_size: int) -> torch.Tensor:
    """The embeddings of all ranks, as negatives of a contrastive loss."""
    bank = [torch.empty_like(embeddings) for _ in range(world_size)]
    dist.gather(embeddings, gather_list=bank, dst=rank)
    return torch.cat(bank)


def main() -> None:
    args = parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = int(os.environ["RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    torch.manual_seed(rank)
    encoder = nn.Linear(args.dim, args.dim)
    with torch.no_grad():
        embeddings = nn.functional.normalize(encoder(torch.randn(args.batch_size, args.dim)))
    bank = memory_bank(embeddings, rank, world_size)
    similarity = embeddings @ bank.T
    print(f"rank {rank}: similarity of {tuple(similarity.shape)}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
