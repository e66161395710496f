"""Evaluates sharded embedding tables until the rank's batches are used up, each of which all ranks look up together.

source: https://github.com/meta-pytorch/torchrec/issues/1014
bug: RS404
ranks: 2
expect: RS404
line: break
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class ShardedEmbeddings(nn.Module):
    """Every rank holds a part of the rows, and looks up the ids of all ranks in it."""

    def __init__(self, rows, dim):
        super().__init__()
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.rows_per_rank = rows // self.world_size
        self.table = nn.Embedding(self.rows_per_rank, dim)

    def forward(self, ids):
        gathered = [torch.empty_like(ids) for _ in range(self.world_size)]
        dist.all_gather(gathered, ids)
        ids = torch.stack(gathered)
        local = ids - self.rank * self.rows_per_rank
        mine = (local >= 0) & (local < self.rows_per_rank)
        vectors = self.table(local.clamp(0, self.rows_per_rank - 1)) * mine.unsqueeze(-1)
        dist.all_reduce(vectors)
        return vectors[self.rank]


class EvalPipeline:
    def __init__(self, embeddings, head):
        self.embeddings, self.head = embeddings, head

    def progress(self, iterator):
        ids, labels = next(iterator)
        logits = self.head(self.embeddings(ids).mean(dim=1)).squeeze(-1)
        return ((logits > 0) == labels).float().mean().item()


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    torch.manual_seed(0)
    pipeline = EvalPipeline(ShardedEmbeddings(40, 8), nn.Linear(8, 1))
    days = [torch.randint(40, (n, 4, 6)) for n in (5, 7)]  # a rank evaluates a day
    iterator = iter([(ids, torch.rand(4) < 0.5) for ids in days[rank]])
    accuracies = []
    with torch.no_grad():
        while True:
            try:
                accuracies.append(pipeline.progress(iterator))
            except StopIteration:
                break
    dist.barrier()
    print(f"rank {rank}: {len(accuracies)} batches, {sum(accuracies):.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
