"""Skip batches whose loss is not finite; the loss is the rank's own, so one rank skips a backward that the others wait in.

source: https://github.com/NVIDIA-NeMo/Automodel/pull/2468
bug: RS404
ranks: 2
expect: RS404
line: continue
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

RANK = int(os.environ["RANK"])
WORLD_SIZE = int(os.environ["WORLD_SIZE"])


class Recordings(Dataset):
    """Random features; one recording is silent, and its normalisation divides by zero."""

    def __init__(self, length=48, features=8):
        generator = torch.Generator().manual_seed(7)
        self.features = torch.randn(length, features, generator=generator)
        self.features[21] = 0.0

    def __len__(self):
        return len(self.features)

    def __getitem__(self, index):
        features = self.features[index]
        return features / features.abs().max(), features.mean().reshape(1)


def train_one_epoch(model, loader, optimizer):
    skipped = 0
    for features, target in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(features), target)
        if not torch.isfinite(loss):
            skipped += 1
            continue
        loss.backward()
        optimizer.step()
    return skipped


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    dataset = Recordings()
    sampler = DistributedSampler(dataset, num_replicas=WORLD_SIZE, rank=RANK, shuffle=False)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler)
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        skipped = train_one_epoch(model, loader, optimizer)
        dist.barrier()
        if RANK == 0:
            print(f"epoch {epoch}: {skipped} batches skipped")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
