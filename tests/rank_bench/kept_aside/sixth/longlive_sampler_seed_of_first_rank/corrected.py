"""Draws a seed on the first rank, and sends it to all before they shuffle the clips.

source: https://github.com/NVlabs/LongLive/issues/71
bug: RS409
ranks: 2
expect: clean
shows: fine
"""

import os
import random
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


@dataclass
class Config:
    clips: int = 24
    batch_size: int = 4
    lr: float = 1e-2
    seed: int = 0


class Clips(Dataset):
    def __init__(self, count):
        self.frames = torch.randn(count, 6, generator=torch.Generator().manual_seed(3))

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        return {"index": index, "frames": self.frames[index]}


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 6))

    def forward(self, noisy):
        return self.net(noisy)


class DiffusionTrainer:
    def __init__(self, config):
        self.config = config
        if dist.get_rank() == 0:
            config.seed = random.SystemRandom().randint(1, 10**6)
            print(f"seed of this run: {config.seed}", flush=True)
        shared = torch.tensor(config.seed)
        dist.broadcast(shared, src=0)
        config.seed = int(shared)
        dataset = Clips(config.clips)
        sampler = DistributedSampler(dataset, shuffle=True, seed=config.seed)
        self.loader = DataLoader(dataset, batch_size=config.batch_size, sampler=sampler)
        self.model = DistributedDataParallel(Denoiser())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.lr)
        self.seen = []

    def train_epoch(self):
        for batch in self.loader:
            clean = batch["frames"]
            loss = nn.functional.mse_loss(self.model(clean + 0.1 * torch.randn_like(clean)), clean)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.seen.extend(batch["index"].tolist())

    def report(self):
        everything = [None] * dist.get_world_size()
        dist.all_gather_object(everything, self.seen)
        counts = Counter(index for part in everything for index in part)
        twice = sum(count > 1 for count in counts.values())
        if dist.get_rank() == 0:
            print(f"FINISHED {twice} clips twice", flush=True)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    trainer = DiffusionTrainer(Config())
    trainer.train_epoch()
    trainer.report()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
