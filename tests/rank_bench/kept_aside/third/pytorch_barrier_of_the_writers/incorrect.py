"""All ranks wait in the barrier of a group that the first rank does not belong to.

source: https://github.com/pytorch/pytorch/issues/40633
bug: RS411
ranks: 3
expect: RS411
line: dist.barrier(group=writers)
decidable: yes
shows: silent rank 0 reads 0 of 2 parts
"""

import os
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

WRITERS = (1, 2)


def prepare(part, folder):
    """Tokenize a part of the corpus."""
    time.sleep(0.5)
    tokens = torch.arange(part * 100, part * 100 + 50)
    unfinished = folder / f"part-{part}.tmp"
    torch.save(tokens, unfinished)
    unfinished.rename(folder / f"part-{part}.pt")


def build_vocabulary(folder):
    parts = sorted(folder.glob("part-*.pt"))
    print(f"rank 0 reads {len(parts)} of {len(WRITERS)} parts", flush=True)
    return torch.cat([torch.load(part) for part in parts]).unique() if parts else torch.empty(0)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    rank = dist.get_rank()
    name = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(name, src=0)
    folder = Path(name[0])

    writers = dist.new_group(ranks=WRITERS)
    if rank in WRITERS:
        prepare(rank, folder)
    dist.barrier(group=writers)
    if rank == 0:
        vocabulary = build_vocabulary(folder)
        print(f"{len(vocabulary)} tokens", flush=True)
    size = torch.tensor([len(vocabulary) if rank == 0 else 0])
    dist.broadcast(size, src=0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
