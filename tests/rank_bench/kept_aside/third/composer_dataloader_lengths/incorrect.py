"""Evaluates on dataloaders whose lengths depend on the rank, and sums up the samples of every batch.

source: https://github.com/mosaicml/composer/issues/3415
bug: RS406
ranks: 2
expect: RS406
line: for batch in dataloader:
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SlideDataset(Dataset):
    """Tiles of the slides that lie on this node; slides have different numbers of tiles."""

    def __init__(self, node_rank):
        generator = torch.Generator().manual_seed(node_rank)
        self.tiles = [torch.randn(6, generator=generator) for _ in range(40 + 12 * node_rank)]

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, index):
        return self.tiles[index], index % 2


class Trainer:
    def __init__(self, model):
        self.model = model
        self.samples = 0

    def eval_loop(self, dataloader):
        correct = 0
        self.model.eval()
        with torch.no_grad():
            for batch in dataloader:
                tiles, labels = batch
                correct += (self.model(tiles).argmax(dim=1) == labels).sum().item()
                batch_num_samples = torch.tensor(len(labels))
                dist.all_reduce(batch_num_samples)
                self.samples += batch_num_samples.item()
        return correct

    def eval(self, dataloader):
        correct = torch.tensor(self.eval_loop(dataloader))
        dist.all_reduce(correct)
        return correct.item() / self.samples


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(0)
    trainer = Trainer(nn.Linear(6, 2))
    accuracy = trainer.eval(DataLoader(SlideDataset(dist.get_rank()), batch_size=8))
    if dist.get_rank() == 0:
        print(f"{trainer.samples} samples, accuracy {accuracy:.3f}", flush=True)
    dist.destroy_process_group()
