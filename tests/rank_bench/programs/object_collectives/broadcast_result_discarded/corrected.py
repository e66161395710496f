"""Broadcast rank 0's run settings and take them out of the list that was passed.

source: https://github.com/pytorch/pytorch/issues/56142
bug: RS408
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
import random
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist


@dataclass
class Settings:
    seed: int
    run_name: str


def new_settings():
    number = random.SystemRandom().randrange(2**31)
    return Settings(seed=number, run_name=f"run-{number:08x}")


def shared_settings():
    """The settings of rank 0, on all ranks."""
    objects = [new_settings()]
    dist.broadcast_object_list(objects, src=0)
    return objects[0]


def shuffled_indices(settings, count, rank, world_size):
    generator = torch.Generator().manual_seed(settings.seed)
    return torch.randperm(count, generator=generator)[rank::world_size]


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank, world_size = dist.get_rank(), dist.get_world_size()
    settings = shared_settings()
    indices = shuffled_indices(settings, 100, rank, world_size)
    print(f"rank {rank}: {settings.run_name}, first sample {indices[0].item()}")
    seeds = [torch.zeros(1, dtype=torch.long) for _ in range(world_size)]
    dist.all_gather(seeds, torch.tensor([settings.seed]))
    if rank == 0:
        same = len({seed.item() for seed in seeds}) == 1
        print("seeds are equal on all ranks" if same else "seeds differ between ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
