"""Every rank loads the folder of its own, and the folders have different numbers of images.

source: https://discuss.pytorch.org/t/training-hangs-on-loss-backward-with-ddp-nnodes-2-nproc-per-node-3/220127/2
bug: RS406
ranks: 3
expect: RS406
line: for images, labels in loader:
decidable: yes
shows: hang
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

IMAGES = {"camera-a": 26, "camera-b": 40, "camera-c": 31}


def load_folder(name, seed):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(IMAGES[name], 1, 6, 6, generator=generator)
    return TensorDataset(images, torch.randint(4, (IMAGES[name],), generator=generator))


def build_loader(args, rank):
    folders = [load_folder(name, seed) for seed, name in enumerate(IMAGES)]
    return DataLoader(folders[rank], batch_size=args.batch_size, shuffle=True)


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 4),
    )


def train(args):
    rank = dist.get_rank()
    loader = build_loader(args, rank)
    model = DDP(build_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"[{rank}] epoch {epoch}: {len(loader)} batches, {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    train(args)
    dist.barrier()
    dist.destroy_process_group()
