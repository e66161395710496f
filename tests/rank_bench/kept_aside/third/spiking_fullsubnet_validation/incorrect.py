"""The first rank validates a wrapped model while the others wait in a barrier.

source: https://haoxiangsnr.github.io/spiking-fullsubnet/reference/FAQ.html
bug: RS403
ranks: 2
expect: RS403
line: enhanced = self.model(noisy)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class SubBandModel(nn.Module):
    def __init__(self, bands=8):
        super().__init__()
        self.norm = nn.BatchNorm1d(bands)
        self.mask = nn.Sequential(nn.Linear(bands, 16), nn.ReLU(), nn.Linear(16, bands))

    def forward(self, noisy):
        return noisy * self.mask(self.norm(noisy)).sigmoid()


class Trainer:
    def __init__(self, model, rank):
        self.rank = rank
        self.model = DDP(model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)

    def train_epoch(self, loader):
        self.model.train()
        for noisy, clean in loader:
            loss = nn.functional.l1_loss(self.model(noisy), clean)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        score = 0.0
        for noisy, clean in loader:
            enhanced = self.model(noisy)
            score -= nn.functional.l1_loss(enhanced, clean).item()
        return score / len(loader)

    def fit(self, train_loader, valid_loader, epochs=2):
        for epoch in range(epochs):
            self.train_epoch(train_loader)
            if self.rank == 0:
                score = self.validate(valid_loader)
                print(f"epoch {epoch}: {score:.4f}", flush=True)
            dist.barrier()


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    rank = dist.get_rank()
    torch.manual_seed(rank)
    speech = [torch.rand(6, 8) for _ in range(7)]
    pairs = [(clean + 0.1 * torch.randn_like(clean), clean) for clean in speech]
    Trainer(SubBandModel(), rank).fit(pairs[:4], pairs[4:])
    dist.destroy_process_group()
