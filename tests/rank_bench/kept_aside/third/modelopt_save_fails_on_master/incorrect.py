"""Goes on with the next solution where a checkpoint could not be written, which only the master notices.

source: https://github.com/NVIDIA/Model-Optimizer/pull/1330
bug: RS410
ranks: 2
expect: RS410
line: except OSError as error:
decidable: yes
shows: hang
"""

import logging
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

logger = logging.getLogger("puzzle")


def is_master():
    return dist.get_rank() == 0


def gather_state_dict(block):
    """The blocks of all ranks on the master."""
    shards = [None] * dist.get_world_size() if is_master() else None
    dist.gather_object(block.state_dict(), shards, dst=0)
    return {f"{i}.{k}": v for i, s in enumerate(shards or []) for k, v in s.items()}


def save_checkpoint(block, folder):
    full = gather_state_dict(block)
    if is_master():
        with open(folder / "model.pt", "wb") as file:
            torch.save(full, file)
    dist.barrier()


def realize_solutions(solutions, root):
    saved = []
    for name, width in solutions:
        block = nn.Linear(4, width)
        try:
            save_checkpoint(block, root / name)
            saved.append(name)
        except OSError as error:
            logger.error("solution %s was not saved: %s", name, error)
    return saved


def main():
    logging.basicConfig(level=logging.INFO)
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    root = Path(tempfile.mkdtemp())
    for name in ("small", "large"):
        (root / name).mkdir()
    solutions = [("small", 2), ("small/draft", 3), ("large", 6)]
    saved = realize_solutions(solutions, root)
    print(f"rank {dist.get_rank()}: {saved}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
