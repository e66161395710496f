"""Trains classification heads on boxes of a frozen detector; a batch without boxes gets a zero loss and leaves out the heads.

source: https://github.com/pytorch/pytorch/issues/73645
bug: RS403
ranks: 2
expect: RS403
line: logits = self.heads(crops)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class FrozenDetector:
    """Stands for a pretrained detector: crops of everything that is bright enough."""

    threshold = 2.2

    def __call__(self, images):
        found = images.amax(dim=1) > self.threshold
        return images[found]


class MultiTaskTrainer:
    def __init__(self, rank):
        self.rank = rank
        self.detector = FrozenDetector()
        self.heads = DistributedDataParallel(
            nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 5))
        )
        self.optimizer = torch.optim.Adam(self.heads.parameters(), lr=1e-3)

    def compute_loss(self, images):
        crops = self.detector(images)
        if len(crops) == 0:
            # nothing was detected, so there is nothing to classify in this batch
            return torch.zeros(1, requires_grad=True)
        labels = crops.argmax(dim=1) % 5
        logits = self.heads(crops)
        return F.cross_entropy(logits, labels)

    def train(self, batches):
        for step, images in enumerate(batches):
            self.optimizer.zero_grad()
            loss = self.compute_loss(images)
            loss.backward()
            self.optimizer.step()
            print(f"[{self.rank}] step {step} loss {loss.item():.4f}", flush=True)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    rank = dist.get_rank()
    generator = torch.Generator().manual_seed(100 + rank)
    batches = [
        torch.randn(6, 12, generator=generator) * (1.0 if i % 3 else rank * 2) for i in range(5)
    ]
    MultiTaskTrainer(rank).train(batches)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
