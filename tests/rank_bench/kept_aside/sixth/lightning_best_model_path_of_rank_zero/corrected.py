"""Loads the best checkpoint on all ranks from the path that the first rank has sent to all.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/19932
bug: RS409
ranks: 2
expect: clean
shows: fine
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class ModelCheckpoint:
    def __init__(self, dirpath, monitor="valid_loss"):
        self.dirpath = Path(dirpath)
        self.monitor = monitor
        self.best_model_path = ""
        self.best_model_score = float("inf")

    def on_validation_end(self, module, metrics, epoch):
        """The first rank writes, and remembers what it has written."""
        if dist.get_rank() != 0:
            return
        current = metrics[self.monitor]
        if current < self.best_model_score:
            self.best_model_score = current
            self.best_model_path = str(self.dirpath / f"epoch={epoch}.ckpt")
            torch.save(module.state_dict(), self.best_model_path)


def loader(size, seed):
    x = torch.randn(size, 4, generator=torch.Generator().manual_seed(seed))
    dataset = TensorDataset(x, x.sum(dim=1, keepdim=True))
    return DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=False))


def reduced_loss(module, batches):
    with torch.no_grad():
        losses = torch.stack([nn.functional.l1_loss(module(x), y) for x, y in batches])
    total = losses.mean()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def fit(module, checkpoints, epochs=3):
    ddp = DistributedDataParallel(module)
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.02)
    train_batches, valid_batches = loader(64, 0), loader(32, 1)
    for epoch in range(epochs):
        for x, y in train_batches:
            optimizer.zero_grad()
            nn.functional.l1_loss(ddp(x), y).backward()
            optimizer.step()
        metrics = {"valid_loss": reduced_loss(module, valid_batches)}
        checkpoints.on_validation_end(module, metrics, epoch)


def test(module, checkpoints):
    """Evaluates the best weights, not the last ones."""
    best = [checkpoints.best_model_path]
    dist.broadcast_object_list(best, src=0)
    state = torch.load(best[0], weights_only=True)
    module.load_state_dict(state)
    return reduced_loss(module, loader(32, 2))


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    shared = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(shared, src=0)
    module = nn.Linear(4, 1)
    checkpoints = ModelCheckpoint(shared[0])
    fit(module, checkpoints)
    loss = test(module, checkpoints)
    if dist.get_rank() == 0:
        print(f"test loss of {Path(checkpoints.best_model_path).name}: {loss:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
