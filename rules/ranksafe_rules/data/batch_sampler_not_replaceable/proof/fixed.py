"""The batch sampler shares the batches itself, and Lightning leaves it alone.

runs-on: cpu-ranks
ranks: 2
requires: pytorch-lightning==2.6.6
expect: output trained for 2 steps
"""

from collections.abc import Iterator

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Sampler, TensorDataset


class Batches(Sampler):
    def __init__(self, samples: int, rank: int, world_size: int) -> None:
        self.batches = [[first, first + 1] for first in range(0, samples, 2)]
        self.batches = self.batches[rank::world_size]

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


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
        batches = Batches(len(dataset), self.trainer.global_rank, self.trainer.world_size)
        return DataLoader(dataset, batch_sampler=batches)


def main() -> None:
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(Network())
    print(f"trained for {trainer.global_step} steps")


if __name__ == "__main__":
    main()
