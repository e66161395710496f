"""Only the last backward before the step reduces the gradients.

runs-on: cpu-ranks
ranks: 2
expect: output reductions for one step: 1
"""

from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

reductions = []


def counted(state, bucket):
    reductions.append(bucket.index())
    return allreduce_hook(state, bucket)


def train() -> None:
    accumulation_steps = 4
    model = DistributedDataParallel(nn.Linear(4, 1))
    model.register_comm_hook(None, counted)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        is_last = (step + 1) % accumulation_steps == 0
        data = torch.full((2, 4), float(dist.get_rank() + step))
        with nullcontext() if is_last else model.no_sync():
            loss = model(data).square().mean() / accumulation_steps
            loss.backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()


def main() -> None:
    dist.init_process_group("gloo")
    train()
    if dist.get_rank() == 0:
        print(f"reductions for one step: {len(reductions)}")
    dist.barrier()  # Nobody closes the connections that another rank still makes.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
