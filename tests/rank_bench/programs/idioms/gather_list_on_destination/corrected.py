"""Gathers objects and tensors with a list on the destination only and None on the other ranks.

source: https://github.com/pytorch/pytorch/pull/161467
bug: RS408
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist


class ResultCollector:
    """Brings the results of all ranks to one of them."""

    def __init__(self, dst: int = 0) -> None:
        self.dst = dst
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()

    @property
    def is_destination(self) -> bool:
        return self.rank == self.dst

    def objects(self, results: dict[str, Any]) -> list[dict[str, Any]] | None:
        gathered = [None] * self.world_size if self.is_destination else None
        dist.gather_object(results, gathered, dst=self.dst)
        return gathered

    def tensors(self, scores: torch.Tensor) -> torch.Tensor | None:
        if self.is_destination:
            parts = [torch.empty_like(scores) for _ in range(self.world_size)]
            dist.gather(scores, parts, dst=self.dst)
            return torch.cat(parts)
        dist.gather(scores, dst=self.dst)
        return None


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    collector = ResultCollector()
    results = collector.objects({"rank": collector.rank, "images": list(range(collector.rank + 1))})
    scores = collector.tensors(torch.rand(4))
    if results is not None and scores is not None:
        images = sum(len(result["images"]) for result in results)
        print(f"{images} images, mean score {scores.mean().item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
