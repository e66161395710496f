"""A pipeline whose first and last stage tie their embeddings makes the group of the two when one of them first asks.

source: https://github.com/pytorch/pytorch/issues/25390
bug: RS412
ranks: 3
expect: RS412
line: self._embedding_group = dist.new_group([0, self.stages - 1])
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class ParallelState:
    """Where this rank stands in the pipeline, and with whom it shares weights."""

    def __init__(self):
        self.stage = dist.get_rank()
        self.stages = dist.get_world_size()
        self._embedding_group = None

    @property
    def is_first(self):
        return self.stage == 0

    @property
    def is_last(self):
        return self.stage == self.stages - 1

    @property
    def embedding_group(self):
        if self._embedding_group is None:
            self._embedding_group = dist.new_group([0, self.stages - 1])
        return self._embedding_group


class Stage(nn.Module):
    def __init__(self, state, vocabulary=16, width=4):
        super().__init__()
        self.state = state
        self.tied = None
        if state.is_first or state.is_last:
            self.tied = nn.Parameter(torch.zeros(vocabulary, width))
        self.block = nn.Linear(width, width)

    def forward(self, inputs):
        hidden = self.tied[inputs] if self.state.is_first else inputs
        hidden = torch.relu(self.block(hidden))
        return hidden @ self.tied.t() if self.state.is_last else hidden


def synchronize_tied_gradients(stage):
    if stage.tied is None:
        return
    dist.all_reduce(stage.tied.grad, group=stage.state.embedding_group)


def step(stage, state):
    """One forward pass through the pipeline, and a stand-in for the backward pass of each stage."""
    if state.is_first:
        hidden = torch.randint(16, (5,), generator=torch.Generator().manual_seed(1))
    else:
        hidden = torch.empty(5, 4)
        dist.recv(hidden, src=state.stage - 1)
    output = stage(hidden)
    if not state.is_last:
        dist.send(output.detach(), dst=state.stage + 1)
    output.pow(2).sum().backward()
    synchronize_tied_gradients(stage)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    state = ParallelState()
    stage = Stage(state)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        step(stage, state)
        optimizer.step()
    metrics_group = dist.new_group(backend="gloo")
    weight = stage.block.weight.detach().norm()
    dist.all_reduce(weight, op=dist.ReduceOp.MAX, group=metrics_group)
    print(f"stage {state.stage}: largest weight norm {weight.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
