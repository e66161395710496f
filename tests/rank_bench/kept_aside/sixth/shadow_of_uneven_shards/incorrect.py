"""Gathers the moving average of shards for a checkpoint; the last rank's shard of the rows is smaller.

source: https://github.com/NCAR/miles-credit/pull/416
bug: RS407
ranks: 2
expect: RS407
line: dist.all_gather(parts, shadow)
decidable: yes
shows: error op.preamble.length
"""

import os
import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


@dataclass
class ShardedParameter:
    """The rows of a weight that this rank holds."""

    name: str
    rows: int
    columns: int
    local: torch.Tensor = field(init=False)

    def __post_init__(self):
        full = torch.randn(self.rows, self.columns, generator=torch.Generator().manual_seed(0))
        self.local = torch.chunk(full, dist.get_world_size())[dist.get_rank()].clone()


class EmaTracker:
    """Elementwise, so each rank follows the average of its own rows."""

    def __init__(self, parameters, decay=0.9):
        self.decay = decay
        self.parameters = parameters
        self.shadows = {p.name: p.local.clone() for p in parameters}

    def update(self):
        for parameter in self.parameters:
            self.shadows[parameter.name].lerp_(parameter.local, 1 - self.decay)

    def state_dict(self):
        state = {}
        for parameter in self.parameters:
            shadow = self.shadows[parameter.name]
            parts = [torch.empty_like(shadow) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, shadow)
            state[parameter.name] = torch.cat(parts)
        return state


def train(parameters, tracker, steps):
    for _ in range(steps):
        for parameter in parameters:
            parameter.local.sub_(0.1 * parameter.local)
        tracker.update()


def save(tracker, folder):
    state = tracker.state_dict()
    if dist.get_rank() == 0:
        torch.save(state, folder / "checkpoint_ema.pt")
        print({name: tuple(value.shape) for name, value in state.items()}, flush=True)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    parameters = [ShardedParameter("encoder", 8, 4), ShardedParameter("head", 7, 4)]
    tracker = EmaTracker(parameters)
    train(parameters, tracker, steps=5)
    with tempfile.TemporaryDirectory() as folder:
        save(tracker, Path(folder))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
