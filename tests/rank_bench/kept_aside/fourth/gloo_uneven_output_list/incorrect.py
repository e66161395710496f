"""Gathers the uneven shards of a table into tensors of the right sizes, which NCCL can do and gloo cannot.

source: https://github.com/pytorch/pytorch/issues/156627
bug: RS407
ranks: 2
expect: RS407
line: dist.all_gather(outputs, shard)
decidable: yes
shows: error (?i)(size|shape|length)
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


class ShardedTable:
    """Rows of a table, split over the ranks; the first ranks hold a row more."""

    def __init__(self, num_rows, dim):
        self.num_rows, self.dim = num_rows, dim
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        generator = torch.Generator().manual_seed(0)
        table = torch.randn(num_rows, dim, generator=generator)
        self.shard = table.tensor_split(self.world_size)[self.rank].contiguous()

    def shard_sizes(self):
        rows, more = divmod(self.num_rows, self.world_size)
        return [rows + (rank < more) for rank in range(self.world_size)]

    def full(self):
        shard = self.shard
        outputs = [torch.empty(rows, self.dim) for rows in self.shard_sizes()]
        dist.all_gather(outputs, shard)
        return torch.cat(outputs)


def test_full_table():
    table = ShardedTable(num_rows=7, dim=3)
    full = table.full()
    assert full.shape == (7, 3)
    first = sum(table.shard_sizes()[: table.rank])
    torch.testing.assert_close(full[first : first + len(table.shard)], table.shard)
    print(f"rank {table.rank}: passed", flush=True)


if __name__ == "__main__":
    dist.init_process_group(
        backend="gloo" if not torch.cuda.is_available() else "nccl",
        timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5"))),
    )
    test_full_table()
    dist.destroy_process_group()
