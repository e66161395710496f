"""Sums the loss of this rank's batches and averages over all ranks once, after the loop.

source: https://github.com/roboflow/rf-detr/pull/1396
bug: RS406
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
from torch.utils.data import DataLoader, IterableDataset


@dataclass
class Shard:
    seed: int
    samples: int


INDEX = [Shard(0, 12), Shard(1, 12), Shard(2, 7)]


class ShardedDetection(IterableDataset):
    def __init__(self, shards):
        ranks = dist.get_world_size()
        if ranks > len(shards):
            raise ValueError(f"{len(shards)} shards are too few for {ranks} ranks")
        self.shards = shards[dist.get_rank() :: ranks]

    def __iter__(self):
        for shard in self.shards:
            generator = torch.Generator().manual_seed(shard.seed)
            for _ in range(shard.samples):
                yield torch.rand(10, generator=generator), torch.rand(4, generator=generator)


class RFDETRModule:
    def __init__(self):
        self.net = nn.Linear(10, 4)
        self.logged = {}

    def log(self, name, value, sync_dist=False):
        if sync_dist:
            value = value.clone()
            dist.all_reduce(value)
            value /= dist.get_world_size()
        self.logged.setdefault(name, []).append(value.item())

    def validation_step(self, images, targets):
        return nn.functional.l1_loss(self.net(images), targets)


class Trainer:
    def __init__(self, module, val_loader):
        self.module = module
        self.val_loader = val_loader

    @torch.no_grad()
    def validate(self):
        module = self.module
        losses = []
        for images, targets in self.val_loader:
            losses.append(module.validation_step(images, targets))
        module.log("val/loss", torch.stack(losses).mean(), sync_dist=True)
        return sum(module.logged["val/loss"]) / len(module.logged["val/loss"])


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    loader = DataLoader(ShardedDetection(INDEX), batch_size=4)
    print(f"val/loss {Trainer(RFDETRModule(), loader).validate():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
