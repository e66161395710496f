"""Rank 0 reads batches and broadcasts them; the others receive the weights of the examples in their shape.

source: https://github.com/mlcommons/algorithmic-efficiency/pull/146
bug: RS415
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

NUM_DENSE, NUM_TARGETS, BATCH_SIZE = 5, 2, 6


def read_batches(num_batches):
    """Only rank 0 has the input pipeline."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(num_batches):
        inputs = torch.randn(BATCH_SIZE, NUM_DENSE, generator=generator)
        targets = torch.randint(2, (BATCH_SIZE, NUM_TARGETS), generator=generator).float()
        weights = torch.ones(BATCH_SIZE, NUM_TARGETS)
        yield inputs, targets, weights


def build_input_queue(num_batches):
    rank = dist.get_rank()
    reader = read_batches(num_batches) if rank == 0 else None
    for _ in range(num_batches):
        if rank == 0:
            inputs, targets, weights = next(reader)
        else:
            inputs = torch.empty(BATCH_SIZE, NUM_DENSE)
            targets = torch.empty(BATCH_SIZE, NUM_TARGETS)
            weights = torch.empty(BATCH_SIZE, NUM_TARGETS)
        dist.broadcast(inputs, src=0)
        dist.broadcast(targets, src=0)
        dist.broadcast(weights, src=0)
        share = slice(rank, None, dist.get_world_size())
        yield inputs[share], targets[share], weights[share]


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(NUM_DENSE, NUM_TARGETS))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    for inputs, targets, weights in build_input_queue(num_batches=4):
        losses = nn.functional.binary_cross_entropy_with_logits(
            model(inputs), targets, reduction="none"
        )
        loss = (losses * weights).sum() / weights.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"rank {dist.get_rank()}: loss {loss.item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
