"""An autoencoder for MNIST with Lightning, after "Lightning in 15 minutes"."""

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import MNIST
from torchvision.transforms import ToTensor

encoder = nn.Sequential(nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 3))
decoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 28 * 28))


class LitAutoEncoder(lightning.LightningModule):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def training_step(self, batch, batch_idx):
        x, _ = batch
        x = x.view(x.size(0), -1)
        x_hat = self.decoder(self.encoder(x))
        loss = nn.functional.mse_loss(x_hat, x)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


train_loader = DataLoader(MNIST(".", download=True, transform=ToTensor()))
trainer = lightning.Trainer(
    limit_train_batches=100, max_epochs=1, accelerator="gpu", devices=2, strategy="ddp"
)
trainer.fit(model=LitAutoEncoder(encoder, decoder), train_dataloaders=train_loader)
