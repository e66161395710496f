"""Two of four ranks evaluate and gather the scores in their own group; the training ranks wait for them.

source: https://github.com/pytorch/pytorch/issues/75755
bug: RS411
ranks: 4
expect: clean
shows: fine
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=4)
    return parser.parse_args()


def evaluate(model: nn.Module, batch_size: int, eval_group: dist.ProcessGroup) -> torch.Tensor:
    """The scores of all evaluating ranks, one after the other."""
    with torch.no_grad():
        scores = model(torch.randn(batch_size, 16)).squeeze(1)
    parts = [torch.zeros_like(scores) for _ in range(dist.get_world_size(eval_group))]
    dist.all_gather(parts, scores, group=eval_group)
    return torch.cat(parts)


def main() -> None:
    args = parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    eval_ranks = [0, 1]
    eval_group = dist.new_group(eval_ranks)
    model = nn.Linear(16, 1)

    if rank in eval_ranks:
        scores = evaluate(model, args.batch_size, eval_group)
        print(f"rank {rank}: {scores.numel()} scores", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
