"""Writes a distributed checkpoint on all ranks, each of which saves its part.

source: https://pytorch.org/docs/2.3/distributed.checkpoint.html
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def is_main() -> bool:
    return dist.get_rank() == 0


def save_checkpoint(model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path, step: int):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    dcp.save(state, checkpoint_id=str(folder / f"step_{step}"))


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    folder = Path(tempfile.gettempdir()) / f"rank_bench_{os.environ['MASTER_PORT']}"
    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(1, 5):
        model(torch.randn(4, 8)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 2 == 0:
            save_checkpoint(net, optimizer, folder, step)
    if is_main():
        print("trained for 4 steps", flush=True)
    dist.barrier()
    if is_main():
        shutil.rmtree(folder, ignore_errors=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
