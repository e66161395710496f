"""Gathers confusion matrices that are as large as there are classes.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/3743
bug: RS407
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def confusion_matrix(preds, target, num_classes=None):
    """Counts of (target, prediction); without a number of classes as many as occur."""
    if num_classes is None:
        num_classes = int(torch.max(preds.max(), target.max())) + 1
    unique_mapping = target * num_classes + preds
    bins = torch.bincount(unique_mapping, minlength=num_classes**2)
    return bins.reshape(num_classes, num_classes)


class ConfusionMatrix(nn.Module):
    def __init__(self, num_classes=None):
        super().__init__()
        self.num_classes = num_classes
        self.preds = []
        self.target = []

    def forward(self, preds, target):
        self.preds.append(preds)
        self.target.append(target)

    def compute(self):
        matrix = confusion_matrix(torch.cat(self.preds), torch.cat(self.target), self.num_classes)
        gathered = [torch.zeros_like(matrix) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, matrix)
        return torch.stack(gathered).sum(dim=0)


class Classifier(nn.Module):
    """Names the direction in which a sample is largest."""

    def __init__(self, classes):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(classes))

    def forward(self, inputs):
        return inputs * self.scale


def flowers(classes=5):
    """A small sorted test set: the rare species come last."""
    labels = torch.tensor([0, 1, 0, 1, 0, 1, 2, 1, 2, 0, 2, 1, 0, 3, 1, 4])
    return TensorDataset(nn.functional.one_hot(labels, classes).float(), labels)


def evaluate(model, dataset, metric, batch_size=4):
    sampler = DistributedSampler(dataset, shuffle=False)
    model.eval()
    with torch.no_grad():
        for inputs, labels in DataLoader(dataset, batch_size=batch_size, sampler=sampler):
            metric(model(inputs).argmax(dim=1), labels)
    return metric.compute()


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    counts = evaluate(Classifier(5), flowers(), ConfusionMatrix(num_classes=5))
    if dist.get_rank() == 0:
        print(f"accuracy {counts.diag().sum().item() / counts.sum().item():.3f}", flush=True)
    dist.destroy_process_group()
