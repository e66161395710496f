"""Calls the second part for the first frame, too, with a uniform distribution.

source: https://github.com/pytorch/pytorch/issues/44957
bug: RS403
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def block(size_in, size_out):
    return nn.Sequential(nn.Linear(size_in, size_out), nn.BatchNorm1d(size_out), nn.ReLU())


class DepthNet(nn.Module):
    """Estimates a distribution over depths, and refines it with that of the frame before."""

    def __init__(self, size=10, depths=6):
        super().__init__()
        self.depths = depths
        self.modelA = DDP(block(size, depths))
        self.modelB = DDP(block(2 * depths, depths))
        self.prev = None
        self.iter = 0

    def reset(self):
        self.iter = 0
        self.prev = None

    def forward(self, frame):
        stuff = self.modelA(frame).softmax(dim=1)
        if self.iter == 0:
            self.prev = torch.full_like(stuff, 1 / self.depths).detach()
        stuff = torch.cat([stuff, self.prev], dim=1)
        stuff2 = self.modelB(stuff)
        output = stuff2.softmax(dim=1)
        self.prev = output.detach()
        self.iter += 1
        return output


def videos(rank, count=3, batch_size=4):
    generator = torch.Generator().manual_seed(rank)
    for number in range(count):
        length = 3 + (number + rank) % 2
        yield torch.randn(length, batch_size, 10, generator=generator)


def frames(rank):
    """All frames of the videos, and whether a video begins with them."""
    for video in videos(rank):
        for number, frame in enumerate(video):
            yield number == 0, frame


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    model = DepthNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (begins, frame) in enumerate(frames(dist.get_rank())):
        if step == 9:
            break
        if begins:
            model.reset()
        loss = -model(frame).max(dim=1).values.log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
