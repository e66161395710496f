"""Rank zero purges old checkpoints with a path helper that broadcasts to the other ranks.

source: https://github.com/meta-pytorch/tnt/pull/936
bug: RS401
ranks: 2
expect: RS401
line: purge_checkpoints(self.dirpath)
decidable: yes
shows: hang
"""

import os
import re
import shutil
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist


def get_latest_checkpoint_path(dirpath):
    """The newest checkpoint below ``dirpath``, the same answer on all ranks."""
    ret = [None]
    if dist.get_rank() == 0:
        ret[0] = _get_latest_checkpoint_path(dirpath)
    dist.broadcast_object_list(ret, src=0)
    return ret[0]


def _get_latest_checkpoint_path(dirpath):
    found = [p for p in os.listdir(dirpath) if re.fullmatch(r"step_(\d+)", p)]
    if not found:
        return None
    return os.path.join(dirpath, max(found, key=lambda p: int(p.split("_")[1])))


class CheckpointSaver:
    def __init__(self, dirpath):
        self.dirpath = dirpath

    def save(self, model, step):
        if dist.get_rank() == 0:
            path = os.path.join(self.dirpath, f"step_{step}")
            os.makedirs(path)
            torch.save(model.state_dict(), os.path.join(path, "model.pt"))
            purge_checkpoints(self.dirpath)
        dist.barrier()


def purge_checkpoints(dirpath):
    latest = get_latest_checkpoint_path(dirpath)
    for name in os.listdir(dirpath):
        path = os.path.join(dirpath, name)
        if path != latest:
            shutil.rmtree(path)


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    saver = CheckpointSaver(tempfile.mkdtemp())
    model = torch.nn.Linear(4, 4)
    for step in range(1, 4):
        grad = torch.randn(4)
        dist.all_reduce(grad)
        saver.save(model, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
