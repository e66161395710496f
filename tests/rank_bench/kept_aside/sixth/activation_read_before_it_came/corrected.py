"""A pipeline stage posts the receives of all microbatches early, and waits for each before it computes.

source: https://github.com/pytorch/pytorch/issues/136380
bug: RS413
ranks: 2
expect: clean
shows: fine
"""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

MICROBATCHES, SHAPE = 3, (4, 6)


def post_receives(rank):
    buffers = []
    for number in range(MICROBATCHES):
        buffer = torch.zeros(SHAPE)
        work = dist.irecv(buffer, src=rank - 1, tag=number)
        buffers.append((buffer, work))
    return buffers


def first_stage(layer, rank):
    generator = torch.Generator().manual_seed(4)
    for number in range(MICROBATCHES):
        time.sleep(0.3)  # a large layer
        output = layer(torch.randn(SHAPE, generator=generator))
        dist.send(output.detach(), dst=rank + 1, tag=number)


def last_stage(layer, rank):
    losses, empty, late = [], 0, 0
    received = post_receives(rank)
    for hidden, work in received:
        late += int(not work.is_completed())
        work.wait()
        empty += int(hidden.count_nonzero() == 0)
        losses.append(layer(hidden).pow(2).mean())
    torch.stack(losses).sum().backward()
    if empty:
        print(f"{empty} microbatches held nothing but zeros, {late} were late", flush=True)
    return received  # the backward pass of a later schedule needs them


STAGES = {0: first_stage, 1: last_stage}


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    rank = dist.get_rank()
    layer = nn.Linear(6, 6)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    received = STAGES[rank](layer, rank)
    if rank == 1:
        optimizer.step()
        print(f"{len(received)} microbatches done", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
