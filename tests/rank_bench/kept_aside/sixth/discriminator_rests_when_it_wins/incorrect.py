"""A GAN lets the discriminator rest while it wins, by what this rank's last batch showed.

source: documented: DistributedDataParallel, gradients are synchronised in the backward pass of all processes, torch 2.13
bug: RS403
ranks: 2
expect: RS403
line: real_scores, fake_scores = self.critic(real), self.critic(fake)
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


class Gan:
    def __init__(self, latent=3, threshold=0.6):
        self.latent = latent
        self.threshold = threshold
        self.maker = DDP(nn.Sequential(nn.Linear(latent, 8), nn.ReLU(), nn.Linear(8, 2)))
        self.critic = DDP(
            nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)), broadcast_buffers=False
        )
        self.maker_optimizer = torch.optim.Adam(self.maker.parameters(), lr=0.01)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=0.05)
        self.accuracy = 0.0
        self.rested = 0

    def critic_step(self, real, fake):
        if self.accuracy > self.threshold:
            self.rested += 1
            return
        real_scores, fake_scores = self.critic(real), self.critic(fake)
        loss = F.softplus(-real_scores).mean() + F.softplus(fake_scores).mean()
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()

    def maker_step(self, noise):
        fake = self.maker(noise)
        scores = self.critic.module(fake)
        self.maker_optimizer.zero_grad()
        F.softplus(-scores).mean().backward()
        self.maker_optimizer.step()
        return fake.detach()

    @torch.no_grad()
    def judge(self, real, fake):
        right = (self.critic.module(real) > 0).float().mean()
        right = (right + (self.critic.module(fake) < 0).float().mean()) / 2
        self.accuracy = right.item()

    def step(self, real):
        noise = torch.randn(len(real), self.latent)
        fake = self.maker_step(noise)
        self.critic_step(real, fake)
        self.judge(real, fake)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    gan = Gan()
    torch.manual_seed(1 + dist.get_rank())
    for _ in range(30):
        gan.step(torch.randn(16, 2) + 1.0)
    dist.barrier()
    print(f"rank {dist.get_rank()}: the critic rested {gan.rested} times", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
