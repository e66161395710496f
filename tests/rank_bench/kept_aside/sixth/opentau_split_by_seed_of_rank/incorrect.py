"""Splits episodes at random, with the generator that has another seed on each rank, so validation sets differ in size.

source: https://github.com/TensorAuto/OpenTau/pull/498
bug: RS406
ranks: 2
expect: RS406
line: for observations, actions in val_loader:
decidable: yes
shows: hang
"""

import os
import random
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset


@dataclass
class DatasetConfig:
    episodes: int = 40
    frames: int = 4
    val_split_ratio: float = 0.3


@dataclass
class TrainConfig:
    seed: int = 1234
    batch_size: int = 4
    dataset: DatasetConfig = field(default_factory=DatasetConfig)


def set_seed(seed, process_index):
    """Noise of images and dropout of prompts shall differ between ranks."""
    seed += process_index * 12345
    random.seed(seed)
    torch.manual_seed(seed)


def make_dataset(cfg):
    generator = torch.Generator().manual_seed(0)
    frames = cfg.episodes * cfg.frames
    return TensorDataset(
        torch.randn(frames, 6, generator=generator), torch.randn(frames, 2, generator=generator)
    )


def split_episodes(cfg, dataset):
    """Whole episodes go to one side, each by chance."""
    chosen = torch.rand(cfg.episodes) < cfg.val_split_ratio
    sides = {True: [], False: []}
    for episode, is_val in enumerate(chosen.tolist()):
        start = episode * cfg.frames
        sides[is_val].extend(range(start, start + cfg.frames))
    return Subset(dataset, sides[False]), Subset(dataset, sides[True])


def train_steps(policy, dataset, batch_size, steps=5):
    net = DistributedDataParallel(policy)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    loader = iter(DataLoader(dataset, batch_size=batch_size, shuffle=True))
    for _ in range(steps):
        observations, actions = next(loader)
        loss = nn.functional.mse_loss(net(observations), actions)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def validate(policy, val_loader):
    total, batches = 0.0, 0
    for observations, actions in val_loader:
        loss = nn.functional.mse_loss(policy(observations), actions)
        dist.all_reduce(loss)
        total += loss.item() / dist.get_world_size()
        batches += 1
    return total / batches


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    cfg = TrainConfig()
    set_seed(cfg.seed, dist.get_rank())
    train_set, val_set = split_episodes(cfg.dataset, make_dataset(cfg.dataset))
    print(f"rank {dist.get_rank()}: {len(val_set)} frames for validation", flush=True)
    policy = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    train_steps(policy, train_set, cfg.batch_size)
    val_loss = validate(policy, DataLoader(val_set, batch_size=cfg.batch_size))
    if dist.get_rank() == 0:
        print(f"validation loss {val_loss:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
