"""Validates on mini-batches that are dealt out to the ranks in turn, so the first rank may get one more.

source: https://github.com/lhotse-speech/lhotse/pull/1277
bug: RS406
ranks: 2
expect: RS406
line: for batch_idx, batch in enumerate(valid_dl):
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class DynamicBucketingSampler:
    """Packs recordings of similar length into batches of at most max_duration seconds."""

    def __init__(self, durations, max_duration, rank, world_size):
        self.durations = sorted(durations)
        self.max_duration = max_duration
        self.rank, self.world_size = rank, world_size

    def _batches(self):
        batch = []
        for duration in self.durations:
            if batch and duration * (len(batch) + 1) > self.max_duration:
                yield batch
                batch = []
            batch.append(duration)
        yield batch

    def __iter__(self):
        for index, batch in enumerate(self._batches()):
            if index % self.world_size == self.rank:
                yield batch


class AsrModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(3, 8)
        self.joiner = nn.Linear(8, 1)

    def forward(self, features):
        return self.joiner(self.encoder(features).tanh()).pow(2).sum()


def compute_validation_loss(model, valid_dl):
    model.eval()
    tot_loss = torch.zeros(2)
    with torch.no_grad():
        for batch_idx, batch in enumerate(valid_dl):
            features = torch.tensor(batch).unsqueeze(1) * torch.ones(3)
            tot_loss += torch.stack([model(features), torch.tensor(sum(batch))])
    dist.all_reduce(tot_loss)
    return (tot_loss[0] / tot_loss[1]).item()


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    durations = [1.2, 3.4, 2.2, 8.0, 5.1, 4.4, 9.7, 7.3, 2.9, 6.6, 8.4, 9.9, 8.6]
    valid_dl = DynamicBucketingSampler(durations, 20.0, rank, world_size)
    model = AsrModel()
    mesh = init_device_mesh("cpu", (world_size,))
    for module in (model.encoder, model.joiner, model):
        fully_shard(module, mesh=mesh)
    loss = compute_validation_loss(model, valid_dl)
    if rank == 0:
        print(f"validation loss {loss:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
