"""Only rank 0 gets a log directory from the helper, the other ranks get None; all ranks build file names from it.

source: https://github.com/mlcommons/algorithmic-efficiency/issues/412
bug: RS409
ranks: 2
expect: RS409
line: states = os.path.join(log_dir, f"optimizer_rank{RANK}.pt")
decidable: yes
shows: error TypeError: expected str, bytes or os.PathLike object, not NoneType
"""

import os
import shutil
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from helper_incorrect import get_log_dir
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANK = int(os.environ["RANK"])


def train(model, optimizer, steps=5):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    log_dir = get_log_dir(tempfile.gettempdir(), "rank_bench")
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer)
    states = os.path.join(log_dir, f"optimizer_rank{RANK}.pt")
    torch.save(optimizer.state_dict(), states)
    dist.barrier()
    if RANK == 0:
        print(f"{len(os.listdir(log_dir))} files")
        shutil.rmtree(log_dir)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
