"""The first stage sends one target per micro-batch; the last stage receives for the warm-up step as well.

source: https://github.com/tdrussell/diffusion-pipe/issues/409
bug: RS416
ranks: 2
expect: RS416
line: dist.recv(target, src=FIRST)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

FIRST, LAST = 0, 1
WARMUP = 1
MICRO_BATCHES = 4


def run_first(stage: nn.Module) -> None:
    for index in range(MICRO_BATCHES):
        batch = torch.randn(2, 8)
        dist.send(torch.full((2,), float(index)), dst=LAST)
        dist.send(stage(batch).detach(), dst=LAST)


def run_last(stage: nn.Module) -> float:
    total = 0.0
    target = torch.empty(2)
    hidden = torch.empty(2, 8)
    for _ in range(WARMUP + MICRO_BATCHES):
        dist.recv(target, src=FIRST)
        dist.recv(hidden, src=FIRST)
        total += (stage(hidden).mean(dim=1) - target).pow(2).mean().item()
    return total / MICRO_BATCHES


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    stage = nn.Linear(8, 8)
    if dist.get_rank() == FIRST:
        run_first(stage)
    else:
        print(f"loss {run_last(stage):.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
