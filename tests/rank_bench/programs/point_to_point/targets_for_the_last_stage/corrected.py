"""The first stage of a pipeline sends the targets to the last stage in training, where that receives them.

source: https://github.com/tdrussell/diffusion-pipe/issues/409
bug: RS416
ranks: 3
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

HIDDEN, TARGETS = 1, 2


class PipelineEngine:
    def __init__(self, width=4, batch=6):
        self.rank = dist.get_rank()
        self.last = dist.get_world_size() - 1
        self.shape = (batch, width)
        self.layer = nn.Linear(width, width)
        self.training = True
        self.pending = None

    def load(self, seed):
        generator = torch.Generator().manual_seed(seed)
        inputs = torch.randn(self.shape, generator=generator)
        targets = torch.randn(self.shape, generator=generator)
        if self.training:
            self.pending = dist.isend(targets, dst=self.last, tag=TARGETS)
        return inputs

    def forward(self, seed):
        if self.rank == 0:
            hidden = self.load(seed)
        else:
            hidden = torch.empty(self.shape)
            dist.recv(hidden, src=self.rank - 1, tag=HIDDEN)
        output = torch.tanh(self.layer(hidden))
        if self.rank != self.last:
            dist.send(output.detach(), dst=self.rank + 1, tag=HIDDEN)
        if self.pending is not None:
            self.pending.wait()
            self.pending = None
        return output

    def loss(self, output):
        targets = torch.empty(self.shape)
        dist.recv(targets, src=0, tag=TARGETS)
        return (output - targets).pow(2).mean()

    def step(self, seed):
        output = self.forward(seed)
        if self.rank == self.last and self.training:
            loss = self.loss(output)
            loss.backward()
            return loss.item()
        return None

    @torch.no_grad()
    def sample(self, seed):
        self.training = False
        output = self.forward(seed)
        self.training = True
        return output


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(dist.get_rank())
    engine = PipelineEngine()
    for step in range(4):
        loss = engine.step(step)
        if loss is not None:
            print(f"step {step}: {loss:.3f}", flush=True)
        if step % 2 == 1:
            engine.sample(100 + step)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
