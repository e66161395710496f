"""Trains the discriminator in some steps by chance that all ranks draw from a generator with the same seed.

source: https://github.com/ZhikangNiu/encodec-pytorch/issues/30
bug: RS403
ranks: 2
expect: clean
shows: fine
"""

import os
import random
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class ModelConfig:
    channels: int = 12
    train_discriminator: float = 0.5
    seed: int = 31
    steps: int = 24


def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def generator(config):
    return nn.Sequential(nn.Linear(config.channels, 20), nn.Tanh(), nn.Linear(20, config.channels))


def discriminator(config):
    return nn.Sequential(nn.Linear(config.channels, 7), nn.LeakyReLU(0.2), nn.Linear(7, 1))


class GanTrainer:
    def __init__(self, config):
        self.config = config
        self.model = DDP(generator(config))
        self.disc = DDP(discriminator(config))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-4)
        self.optimizer_disc = torch.optim.Adam(self.disc.parameters(), lr=3e-4)
        self.disc_steps = 0
        self.chance = random.Random(config.seed)

    def generator_step(self, audio):
        fake = self.model(audio)
        loss = F.l1_loss(fake, audio)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return fake, loss.item()

    def train_step(self, audio):
        fake, loss = self.generator_step(audio)
        train_discriminator = self.chance.random() < self.config.train_discriminator
        if train_discriminator:
            fake_logits = self.disc(fake.detach())
            real_logits = self.disc.module(audio)
            loss_disc = F.relu(1 + fake_logits).mean() + F.relu(1 - real_logits).mean()
            self.optimizer_disc.zero_grad()
            loss_disc.backward()
            self.optimizer_disc.step()
            self.disc_steps += 1
        return loss


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    config = ModelConfig()
    set_seed(config.seed + dist.get_rank())
    trainer = GanTrainer(config)
    losses = [trainer.train_step(torch.randn(4, config.channels)) for _ in range(config.steps)]
    print(
        f"rank {dist.get_rank()}: {trainer.disc_steps} {sum(losses) / len(losses):.3f}", flush=True
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
