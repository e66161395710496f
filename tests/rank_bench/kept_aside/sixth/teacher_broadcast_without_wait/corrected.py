"""A student's trainer broadcasts the teacher from the rank that read it, and waits for it.

source: https://github.com/pytorch/pytorch/issues/27806
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
from torch.nn.parallel import DistributedDataParallel


def read_teacher(net):
    """Only the first rank has the file; reading it takes a while."""
    for tensor in net.state_dict().values():
        tensor.zero_()
    if dist.get_rank() == 0:
        time.sleep(0.6)
        generator = torch.Generator().manual_seed(3)
        for tensor in net.state_dict().values():
            tensor.copy_(torch.randn(tensor.shape, generator=generator))


def share(net):
    """Start all transfers at once, so that they overlap."""
    handles = []
    for tensor in net.state_dict().values():
        handles.append(dist.broadcast(tensor, src=0, async_op=True))
    for handle in handles:
        handle.wait()


class Distiller:
    def __init__(self, width=64):
        self.teacher = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))
        read_teacher(self.teacher)
        share(self.teacher)
        self.student = None

    @torch.no_grad()
    def targets(self, inputs):
        return self.teacher(inputs)

    def fit(self, steps):
        generator = torch.Generator().manual_seed(dist.get_rank())
        inputs = torch.randn(steps, 16, 8, generator=generator)
        targets = [self.targets(batch) for batch in inputs]
        if not any(target.abs().sum() > 0 for target in targets):
            print(f"rank {dist.get_rank()}: teacher is still zero", flush=True)
        self.student = DistributedDataParallel(nn.Linear(8, 4))
        optimizer = torch.optim.SGD(self.student.parameters(), lr=0.01)
        for batch, target in zip(inputs, targets, strict=True):
            loss = (self.student(batch) - target).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    Distiller().fit(steps=4)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
