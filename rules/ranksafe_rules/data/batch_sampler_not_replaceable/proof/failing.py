"""Lightning cannot put its distributed sampler into a batch sampler that is none of torch's.

runs-on: cpu-ranks
ranks: 2
requires: pytorch-lightning==2.6.6
expect: exception TypeError: Lightning can't inject a (distributed) sampler into your batch sampler
frame: trainer.fit(Network())
"""

from collections.abc import Iterator

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Sampler, TensorDataset


class Batches(Sampler):
    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __iter__(self) -> Iterator[list[int]]:
        return iter([[first, first + 1] for first in range(0, self.samples, 2)])

    def __len__(self) -> int:
        return self.samples // 2


class Network(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        return self.layer(batch[0]).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def train_dataloader(self) -> DataLoader:
        dataset = TensorDataset(torch.arange(8.0).unsqueeze(1))
        return DataLoader(dataset, batch_sampler=Batches(len(dataset)))


def main() -> None:
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(Network())
    print(f"trained for {trainer.global_step} steps")


if __name__ == "__main__":
    main()
