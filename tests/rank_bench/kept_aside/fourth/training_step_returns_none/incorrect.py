"""Returns None from training_step for a batch without targets, whereupon the loop goes on to the next batch.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/5243
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
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class ProteinDataset(Dataset):
    """Structures with a label for each residue; of some no residue is resolved (-100)."""

    def __init__(self, size=24, length=6):
        generator = torch.Generator().manual_seed(0)
        self.features = torch.randn(size, length, 5, generator=generator)
        self.labels = torch.randint(3, (size, length), generator=generator)
        self.labels[7] = -100

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.features[index], self.labels[index]


class LitModule:
    def __init__(self):
        self.net = DistributedDataParallel(nn.Linear(5, 3))

    def training_step(self, batch, batch_idx):
        features, labels = batch
        logits = self.net(features)
        resolved = labels != -100
        if not resolved.any():
            return None
        return nn.functional.cross_entropy(logits[resolved], labels[resolved])

    def configure_optimizers(self):
        return torch.optim.Adam(self.net.parameters(), lr=1e-3)


class Trainer:
    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def fit(self, module, loader):
        optimizer = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            loader.sampler.set_epoch(epoch)
            for batch_idx, batch in enumerate(loader):
                optimizer.zero_grad()
                loss = module.training_step(batch, batch_idx)
                if loss is None:
                    continue
                loss.backward()
                optimizer.step()


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    dataset = ProteinDataset()
    loader = DataLoader(dataset, batch_size=1, sampler=DistributedSampler(dataset))
    Trainer(max_epochs=2).fit(LitModule(), loader)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
