"""Broadcasts three values of a checkpoint, for which the receivers have a list with room for one.

source: documented: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.broadcast_object_list, 2.13
bug: RS408
ranks: 2
expect: RS408
line: dist.broadcast_object_list(progress, src=0)
decidable: yes
shows: hang
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def is_first():
    return dist.get_rank() == 0


class RunState:
    """Weights and progress of a run."""

    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.epoch = 0
        self.best_loss = float("inf")
        self.history = []

    def save(self, path):
        torch.save(
            {
                "model": self.model.state_dict(),
                "epoch": self.epoch,
                "best_loss": self.best_loss,
                "history": self.history,
            },
            path,
        )

    def resume(self, path):
        """The first rank reads the file; others get the progress from it, and the weights from DDP."""
        progress = [None]
        if is_first():
            saved = torch.load(path, weights_only=True)
            self.model.load_state_dict(saved["model"])
            progress = [saved["epoch"], saved["best_loss"], saved["history"]]
        dist.broadcast_object_list(progress, src=0)
        self.epoch, self.best_loss, self.history = progress


def new_state(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    return RunState(model, torch.optim.SGD(model.parameters(), lr=0.05))


def earlier_run(path):
    state = new_state(0)
    state.epoch, state.best_loss, state.history = 2, 0.71, [0.93, 0.71]
    state.save(path)


def train(state, epochs):
    ddp = DistributedDataParallel(state.model)
    while state.epoch < epochs:
        x = torch.randn(16, 3)
        loss = nn.functional.mse_loss(ddp(x), x.amax(dim=1, keepdim=True))
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
        state.history.append(loss.item())
        state.best_loss = min(state.best_loss, loss.item())
        state.epoch += 1


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    state = new_state(dist.get_rank())
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "last.pt"
        if is_first():
            earlier_run(path)
        state.resume(path)
        train(state, epochs=5)
    if is_first():
        print(f"{state.epoch} epochs, best loss {state.best_loss:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
