"""The first rank scatters the files of a data set as many lists as there are full shards, not as there are ranks.

source: documented: torch.distributed.scatter_object_list, the list has one object for each rank, torch 2.13
bug: RS408
ranks: 3
expect: RS408
line: dist.scatter_object_list(mine, plan, src=0)
decidable: yes
shows: error Incorrect (input|output) list size
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

FILES = [f"part-{number:02}.bin" for number in range(10)]
PER_SHARD = 5


class Planner:
    """Only the first rank can list the bucket."""

    def __init__(self, files):
        self.files = files

    def shards(self):
        return [
            self.files[start : start + PER_SHARD] for start in range(0, len(self.files), PER_SHARD)
        ]


def my_files():
    plan = Planner(FILES).shards() if dist.get_rank() == 0 else None
    mine = [None]
    dist.scatter_object_list(mine, plan, src=0)
    return mine[0]


def read(name):
    """Rows that depend on the name of the file alone."""
    number = int(name.removeprefix("part-").removesuffix(".bin"))
    return torch.randn(6, 4, generator=torch.Generator().manual_seed(number))


def statistics(files):
    total, count = torch.zeros(4), torch.zeros(1)
    for name in files:
        rows = read(name)
        total += rows.sum(dim=0)
        count += len(rows)
    dist.all_reduce(total)
    dist.all_reduce(count)
    return total / count


class Normalized(nn.Module):
    def __init__(self, mean):
        super().__init__()
        self.register_buffer("mean", mean)
        self.net = nn.Linear(4, 2)

    def forward(self, rows):
        return self.net(rows - self.mean)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    files = my_files()
    print(f"rank {dist.get_rank()} reads {files}", flush=True)
    model = nn.parallel.DistributedDataParallel(Normalized(statistics(files)))
    rows = torch.cat([read(name) for name in files])
    model(rows).pow(2).mean().backward()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
