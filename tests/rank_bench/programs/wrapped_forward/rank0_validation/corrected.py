"""Trains a DDP model with batch normalisation and validates its inner module on the first rank alone.

source: https://github.com/pytorch/pytorch/issues/54059
bug: RS403
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class ImageClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.norm(self.conv(x)).relu().mean(dim=(2, 3)))


def make_dataset(count: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(count)
    images = torch.randn(count, 3, 8, 8, generator=generator)
    return TensorDataset(images, torch.randint(0, 10, (count,), generator=generator))


@torch.no_grad()
def validate(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    hits = sum((model(x).argmax(dim=1) == y).sum().item() for x, y in loader)
    model.train()
    return hits / len(loader.dataset)


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group(backend="gloo", timeout=timeout)
    gpu = dist.get_rank()
    model = DDP(ImageClassifier())
    train_set = make_dataset(64)
    train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
    val_loader = DataLoader(make_dataset(32), batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    for epoch in range(2):
        train_loader.sampler.set_epoch(epoch)
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        if gpu == 0:
            accuracy = validate(model.module, val_loader)
            print(f"epoch {epoch}: accuracy {accuracy:.2f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
