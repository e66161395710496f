"""The warm-up of a pipeline has a forward for each stage that follows, even if there are fewer microbatches.

source: https://github.com/pytorch/torchtitan/issues/775
bug: RS416
ranks: 3
expect: RS416
line: self.sends.append(dist.isend(output.detach(), dst=self.rank + 1))
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

HIDDEN = 6


class Schedule1F1B:
    """Warm-up forwards, then a forward after each backward, then the backwards that are left."""

    def __init__(self, stage, n_microbatches):
        self.stage = stage
        self.rank, self.num_stages = dist.get_rank(), dist.get_world_size()
        self.n_microbatches = n_microbatches
        self.pending, self.sends = [], []

    def forward_one(self, inputs):
        if self.rank == 0:
            hidden = next(inputs)
        else:
            hidden = torch.empty(2, HIDDEN)
            dist.recv(hidden, src=self.rank - 1)
        hidden.requires_grad_()
        output = self.stage(hidden)
        if self.rank < self.num_stages - 1:
            self.sends.append(dist.isend(output.detach(), dst=self.rank + 1))
        self.pending.append((hidden, output))

    def backward_one(self):
        hidden, output = self.pending.pop(0)
        if self.rank == self.num_stages - 1:
            output.pow(2).mean().backward()
        else:
            grad = torch.empty_like(output)
            dist.recv(grad, src=self.rank + 1)
            output.backward(grad)
        if self.rank > 0:
            self.sends.append(dist.isend(hidden.grad, dst=self.rank - 1))

    def step(self, inputs):
        warmup = self.num_stages - self.rank
        for _ in range(warmup):
            self.forward_one(inputs)
        for _ in range(warmup, self.n_microbatches):
            self.backward_one()
            self.forward_one(inputs)
        while self.pending:
            self.backward_one()
        while self.sends:
            self.sends.pop(0).wait()


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(dist.get_rank())
    stage = nn.Linear(HIDDEN, HIDDEN)
    schedule = Schedule1F1B(stage, n_microbatches=2)
    microbatches = iter(lambda: torch.randn(2, HIDDEN), None)
    for step in range(2):
        schedule.step(microbatches)
        print(f"stage {dist.get_rank()}, step {step}: {stage.weight.grad.norm():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
