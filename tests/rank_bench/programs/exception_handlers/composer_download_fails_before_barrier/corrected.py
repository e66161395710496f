"""Only the first rank downloads a checkpoint, and reaches the barrier also where that fails.

source: https://github.com/mosaicml/composer/pull/334
bug: RS410
ranks: 2
expect: clean
shows: fine
"""

import os
import shutil
import tempfile
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class ObjectStore:
    """A bucket, which here is a folder."""

    def __init__(self, bucket):
        self.bucket = Path(bucket)

    def download(self, name, destination):
        shutil.copy(self.bucket / name, destination)


@contextmanager
def workspace():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


class CheckpointLoader:
    def __init__(self, store, name):
        self.store = store
        self.name = name

    def fetch(self, folder):
        """Bring the checkpoint into the folder of the node; whether it is there."""
        target = folder / self.name
        try:
            if dist.get_rank() == 0:
                self.store.download(self.name, target)
        except FileNotFoundError as error:
            print(f"no checkpoint, starting from scratch: {error}", flush=True)
        finally:
            dist.barrier()
        return target.exists()

    def load(self, model, folder):
        if self.fetch(folder):
            model.load_state_dict(torch.load(folder / self.name, weights_only=True))


def train(model, steps=4):
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        total_loss = ddp(torch.randn(4, 6)).abs().mean()
        total_loss.backward()
        optimizer.step()
    return total_loss.detach()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(dist.get_rank())
    model = nn.Linear(6, 3)
    with workspace() as bucket, workspace() as folder:
        CheckpointLoader(ObjectStore(bucket), "ep3-ba40.pt").load(model, folder)
        loss = train(model)
    dist.all_reduce(loss)
    if dist.get_rank() == 0:
        print(f"loss {loss.item() / dist.get_world_size():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
