"""Save whenever the validation loss improves; dist.reduce completes the loss on rank 0 only, so the ranks disagree about saving, which gathers from all of them.

source: https://github.com/pytorch/pytorch/issues/77562
bug: RS405
ranks: 2
expect: RS405
line: if val_loss < best_val_loss:
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def make_shard(rank, world_size, noisy=False):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(64, 3, generator=generator)
    y = x.sum(dim=1, keepdim=True)
    if noisy:
        y[1::2] *= 0.3
    return x[rank::world_size].split(8), y[rank::world_size].split(8)


@torch.no_grad()
def validation(model, shard):
    model.eval()
    totals = torch.zeros(2)
    for x, y in zip(*shard, strict=True):
        totals[0] += F.mse_loss(model(x), y, reduction="sum")
        totals[1] += len(x)
    dist.reduce(totals, dst=0, op=dist.ReduceOp.SUM)
    return (totals[0] / totals[1]).item()


def save_checkpoint(model, epoch, rank, world_size):
    random_states = [None] * world_size if rank == 0 else None
    dist.gather_object(torch.get_rng_state(), random_states, dst=0)
    if rank == 0:
        path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"best_loss_save_{os.getpid()}.pt")
        torch.save({"model": model.module.state_dict(), "rng": random_states}, path)
        os.remove(path)
        print(f"saved epoch {epoch}")


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    best_val_loss = float("inf")
    for epoch in range(12):
        model.train()
        for x, y in zip(*make_shard(rank, world_size), strict=True):
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        val_loss = validation(model, make_shard(rank, world_size, noisy=True))
        if val_loss < best_val_loss:
            best_val_loss = val_loss
            save_checkpoint(model, epoch, rank, world_size)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
