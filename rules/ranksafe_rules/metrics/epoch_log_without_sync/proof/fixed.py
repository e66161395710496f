"""The losses of both ranks are averaged: 1.50, as on one GPU.

runs-on: cpu-ranks
ranks: 2
requires: pytorch-lightning==2.6.6
expect: output rank 0 reports 1.50
"""

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset


class Network(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def validation_step(self, batch: list[torch.Tensor], batch_idx: int) -> None:
        (values,) = batch
        loss = values.mean() + 0 * self.layer(values).mean()
        self.log("val_loss", loss, sync_dist=True)


def main() -> None:
    # Rank 0 gets 0 and 2, rank 1 gets 1 and 3.
    data = DataLoader(TensorDataset(torch.arange(4.0).unsqueeze(1)), batch_size=1)
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    results = trainer.validate(Network(), data, verbose=False)
    if trainer.is_global_zero:
        print(f"rank 0 reports {results[0]['val_loss']:.2f}")


if __name__ == "__main__":
    main()
