"""Leaves the loop when the loader of any rank has ended, as all ranks learn by a gather.

source: https://github.com/lifeiteng/vall-e/pull/93
bug: RS406
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def bucketed_batches(durations, max_duration):
    batch, total = [], 0.0
    for d in durations:
        if batch and total + d > max_duration:
            yield torch.tensor(batch).unsqueeze(1)
            batch, total = [], 0.0
        batch.append(d)
        total += d
    if batch:
        yield torch.tensor(batch).unsqueeze(1)


def compute_validation_loss(model, valid_dl):
    tot_loss = torch.zeros(1)
    with torch.no_grad():
        for batch in valid_dl:
            tot_loss += model.module(batch).pow(2).sum()
    dist.all_reduce(tot_loss)
    return tot_loss.item()


def train_one_epoch(model, optimizer, train_dl, valid_dl):
    iter_dl = iter(train_dl)
    batch_idx = 0
    while True:
        batch = next(iter_dl, None)
        stop_iteration = [None] * dist.get_world_size()
        dist.all_gather_object(stop_iteration, batch is None)
        if any(stop_iteration):
            logging.info("Reaches end of dataloader.")
            break
        batch_idx += 1
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    valid_loss = compute_validation_loss(model, valid_dl)
    print(f"rank {dist.get_rank()}: {batch_idx} batches, validation {valid_loss:.3f}")


def run(rank, world_size):
    model = DDP(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    durations = [1.0, 9.0, 2.0, 8.0, 1.5, 9.5, 2.5, 7.0, 1.0, 9.0, 3.0, 8.5]
    mine = durations[rank::world_size]
    train_one_epoch(
        model, optimizer, bucketed_batches(mine, 10.0), bucketed_batches(mine[:2], 10.0)
    )


if __name__ == "__main__":
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    run(dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
