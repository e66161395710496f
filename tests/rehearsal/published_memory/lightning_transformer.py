"""Lightning's demonstration Transformer with 1 billion parameters in float32 on 2 GPUs, 35 tokens a step, Adam."""

import argparse

import lightning
import torch
from lightning.fabric.strategies import FSDPStrategy as FabricStrategy
from lightning.pytorch.demos import Transformer
from lightning.pytorch.strategies import FSDPStrategy as TrainerStrategy
from older_adam import OlderAdam
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

STRATEGIES = {
    "no-shard": {"sharding_strategy": "NO_SHARD"},
    "shard-grad-op": {"sharding_strategy": "SHARD_GRAD_OP"},
    "full-shard": {},
    "offload": {"cpu_offload": True},
}
WORDS, LENGTH = 33278, 35
parser = argparse.ArgumentParser()
parser.add_argument("--in", dest="place", choices=("fabric", "trainer"), required=True)
parser.add_argument("--optimizer", choices=("today", "2023-06"), default="today")
parser.add_argument("--strategy", choices=("ddp", *STRATEGIES), required=True)
given = parser.parse_args()
Adam = OlderAdam if given.optimizer == "2023-06" else torch.optim.Adam


def strategy(kind):
    if given.strategy == "ddp":
        return "ddp"
    layers = {nn.TransformerEncoderLayer, nn.TransformerDecoderLayer}
    return kind(auto_wrap_policy=layers, **STRATEGIES[given.strategy])


def made():
    return Transformer(vocab_size=WORDS, nlayers=32, nhid=4096, ninp=1024, nhead=64)


words = torch.randint(WORDS, (20 * LENGTH + 1,))
rows = [
    (words[start : start + LENGTH], words[start + 1 : start + LENGTH + 1])
    for start in range(0, 20 * LENGTH, LENGTH)
]


class LanguageModel(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = made()

    def training_step(self, batch):
        inputs, targets = batch
        output = self.model(inputs, targets)
        loss = functional.nll_loss(output, targets.view(-1))
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return Adam(self.parameters(), lr=0.1)


def in_fabric():
    fabric = lightning.Fabric(accelerator="cuda", devices=2, strategy=strategy(FabricStrategy))
    fabric.launch()
    fabric.seed_everything(42)
    model = made()
    optimizer = Adam(model.parameters(), lr=0.1)
    model, optimizer = fabric.setup(model, optimizer)
    for row in rows[:10]:
        inputs, targets = fabric.to_device(row)
        output = model(inputs.unsqueeze(0), targets.unsqueeze(0))
        loss = functional.nll_loss(output, targets.view(-1))
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        fabric.print(loss.item())


def in_trainer():
    lightning.seed_everything(42)
    trainer = lightning.Trainer(accelerator="cuda", devices=2, strategy=strategy(TrainerStrategy))
    trainer.fit(LanguageModel(), DataLoader(rows))


in_fabric() if given.place == "fabric" else in_trainer()
