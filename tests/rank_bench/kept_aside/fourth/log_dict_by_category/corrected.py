"""Logs a loss for all categories; where a rank has seen none of one it is zero.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/19106
bug: RS406
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

CATEGORIES = ("car", "pedestrian", "cyclist")


class Scenes(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        # the only cyclists ride through scene 6
        category = 2 if index == 6 else index // 2 % 2
        return torch.randn(9, generator=generator), category


class LightningModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.callback_metrics = {}

    def log_dict(self, metrics):
        for key, value in metrics.items():
            self.callback_metrics[key] = value.detach().clone()

    def reduce_metrics(self):
        reduced = {}
        for name, value in self.callback_metrics.items():
            dist.all_reduce(value)
            reduced[name] = value.item() / dist.get_world_size()
        return reduced


class TrajectoryPredictor(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(9, len(CATEGORIES))
        self.losses = {}

    def validation_step(self, batch):
        features, category = batch
        loss = nn.functional.cross_entropy(self.net(features), category, reduction="none")
        for number in category.unique().tolist():
            name = CATEGORIES[number]
            self.losses.setdefault(name, []).append(loss[category == number].mean())

    def on_validation_epoch_end(self):
        zero = [torch.zeros(())]
        self.log_dict(
            {f"val/{k}": torch.stack(self.losses.get(k, zero)).mean() for k in CATEGORIES}
        )
        self.losses.clear()


@torch.no_grad()
def validate(module, loader):
    for batch in loader:
        module.validation_step(batch)
    module.on_validation_epoch_end()
    return module.reduce_metrics()


if __name__ == "__main__":
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    scenes = Scenes()
    sampler = DistributedSampler(scenes, shuffle=False)
    metrics = validate(TrajectoryPredictor(), DataLoader(scenes, batch_size=4, sampler=sampler))
    print(metrics, flush=True)
    dist.destroy_process_group()
