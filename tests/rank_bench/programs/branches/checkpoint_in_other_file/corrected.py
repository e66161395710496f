"""Trains with DDP and calls save_checkpoint on every rank; the function itself guards the file.

source: https://github.com/ray-project/ray/issues/56997
bug: RS401
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from checkpoint import save_checkpoint
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train_one_epoch(model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    total = 0.0
    for _ in range(4):
        inputs = torch.randn(8, 12)
        loss = nn.functional.mse_loss(model(inputs), inputs[:, :1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / 4


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    torch.manual_seed(rank)

    model = DistributedDataParallel(nn.Linear(12, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    port = os.environ["MASTER_PORT"]
    path = Path(tempfile.gettempdir()) / f"checkpoint-{port}.pt"
    for epoch in range(3):
        loss = train_one_epoch(model, optimizer)
        save_checkpoint(path, model, optimizer, epoch)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
