"""Computes the box metrics on every rank; a rank without boxes contributes an empty state.

source: https://github.com/weecology/DeepForest/issues/1407
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Subset


class GatheredMean:
    """Keeps values and averages those of all ranks."""

    def __init__(self, name):
        self.name = name
        self.values = []
        self.groundtruth_labels = []

    def update(self, values, labels=()):
        self.values.extend(values)
        self.groundtruth_labels.extend(labels)

    def compute(self):
        states = [None] * dist.get_world_size()
        dist.all_gather_object(states, self.values)
        values = [value for state in states for value in state]
        return {self.name: sum(values) / max(len(values), 1)}


class deepforest:
    def __init__(self):
        self.model = nn.Linear(4, 1)
        self.iou_metric = GatheredMean("iou")
        self.precision_recall_metric = GatheredMean("box_precision")

    def validation_step(self, batch):
        image, boxes = batch
        score = torch.sigmoid(self.model(image)).mean().item()
        if len(boxes) > 0:
            self.iou_metric.update([score], ["Tree"] * len(boxes))
        self.precision_recall_metric.update([score])

    def _compute_epoch_metrics(self):
        metrics = {}
        metrics.update(self.iou_metric.compute())
        metrics.update(self.precision_recall_metric.compute())
        return metrics

    @torch.no_grad()
    def validate(self, loader):
        for batch in loader:
            self.validation_step(batch)
        return self._compute_epoch_metrics()


def load_annotations(count=12):
    generator = torch.Generator().manual_seed(3)
    # trees stand in the first half of the survey only
    return [
        (torch.randn(4, generator=generator), torch.ones(2 if image < count // 2 else 0, 4))
        for image in range(count)
    ]


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank, world_size = dist.get_rank(), dist.get_world_size()
    images = load_annotations()
    share = len(images) // world_size
    shard = Subset(images, range(rank * share, (rank + 1) * share))
    m = deepforest()
    metrics = m.validate(DataLoader(shard, batch_size=None, shuffle=False))
    if rank == 0:
        print(metrics, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
