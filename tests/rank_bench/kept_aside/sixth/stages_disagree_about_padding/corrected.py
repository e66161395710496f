"""A pipeline stage sends the activations of a padded block, and the next one receives a padded block.

source: https://github.com/NVIDIA/Megatron-LM/issues/5100
bug: RS415
ranks: 2
expect: clean
shows: fine
"""

import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


@dataclass(frozen=True)
class PipelineConfig:
    width: int = 4
    multiple: int = 8
    microbatches: int = 4

    def padded(self, length):
        return -(-length // self.multiple) * self.multiple


class FirstStage(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(16, config.width, padding_idx=0)

    def forward(self, tokens):
        missing = self.config.padded(len(tokens)) - len(tokens)
        return self.embed(nn.functional.pad(tokens, (0, missing)))


class LastStage(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.head = nn.Linear(config.width, 16)

    def forward(self, hidden):
        return self.head(hidden)


class Schedule:
    def __init__(self, config):
        self.config = config
        self.rank = dist.get_rank()
        self.stage = FirstStage(config) if self.rank == 0 else LastStage(config)

    def lengths(self):
        """Both stages draw the lengths of the microbatches from the same seed."""
        generator = torch.Generator().manual_seed(2)
        return torch.randint(9, 30, (self.config.microbatches,), generator=generator).tolist()

    def send(self, length):
        tokens = torch.randint(1, 16, (length,))
        dist.send(self.stage(tokens).detach(), dst=self.rank + 1)

    def receive(self, length):
        activations = torch.empty(self.config.padded(length), self.config.width)
        dist.recv(activations, src=self.rank - 1)
        scores = self.stage(activations)
        scores.logsumexp(dim=1).mean().backward()

    def run(self):
        for length in self.lengths():
            if self.rank == 0:
                self.send(length)
            else:
                self.receive(length)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    schedule = Schedule(PipelineConfig())
    schedule.run()
    if schedule.rank == 1:
        print(f"gradient {schedule.stage.head.weight.grad.norm():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
