"""Resumes at the step that each rank finds in its own state file, where the file of one rank is missing.

source: https://github.com/ByteDance-Seed/VeOmni/pull/1179
bug: RS406
ranks: 3
expect: RS406
line: for step in range(start_step, self.args.max_steps):
decidable: yes
shows: hang
"""

import os
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class TrainArguments:
    load_path: str
    max_steps: int = 6
    lr: float = 0.05


class GlobalStateCallback:
    """Keeps the state of the trainer beside the weights, a file for each rank."""

    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()

    def state_path(self):
        return Path(self.args.load_path) / f"extra_state_rank_{self.rank}.pt"

    def load_global_state(self):
        if not self.state_path().exists():
            print(f"rank {self.rank}: no trainer state, resuming weights only", flush=True)
            return None
        return torch.load(self.state_path(), weights_only=True)


class Trainer:
    def __init__(self, args, model):
        self.args = args
        self.model = DDP(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.lr)
        self.state_callback = GlobalStateCallback(args)

    def train_step(self, inputs):
        loss = self.model(inputs).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, batches):
        state = self.state_callback.load_global_state()
        start_step = state["global_step"] if state is not None else 0
        for step in range(start_step, self.args.max_steps):
            loss = self.train_step(batches[step])
        if dist.get_rank() == 0:
            print(f"trained from step {start_step}, loss {loss:.4f}", flush=True)


def interrupted_run(folder):
    """What the run before left behind: the last node was lost before it had written."""
    if dist.get_rank() != dist.get_world_size() - 1:
        torch.save({"global_step": 3}, folder / f"extra_state_rank_{dist.get_rank()}.pt")
    dist.barrier()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(dist.get_rank())
    with tempfile.TemporaryDirectory() as name:
        interrupted_run(Path(name))
        trainer = Trainer(TrainArguments(load_path=name), nn.Linear(8, 1))
        trainer.fit(torch.randn(6, 4, 8))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
