"""Builds the tensor that is reduced from a number whose type, and with it the tensor's, depends on the batches that a rank has seen.

source: https://github.com/modelscope/ms-swift/pull/9551
bug: RS415
ranks: 2
expect: RS415
file: metrics.py
line: dist.all_reduce(tensor)
decidable: no: whether a rank's state is a Python or a NumPy number depends on the batches that it has seen
shows: error op.preamble.length
"""

import os
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from metrics import MeanMetric
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def compute_acc(preds, labels, acc_strategy="token"):
    """Accuracies of a batch; None where no label counts."""
    masks = labels != -100
    if not np.any(masks):
        return []
    if acc_strategy == "seq":
        return [np.all(p[m] == y[m]) for p, y, m in zip(preds, labels, masks, strict=True)]
    return (preds[masks] == labels[masks]).tolist()


class SwiftTrainer:
    def __init__(self, model, acc_strategy="seq"):
        self.model = model
        self.acc_strategy = acc_strategy
        self.metrics = {"acc": MeanMetric()}

    @torch.no_grad()
    def prediction_step(self, inputs, labels):
        preds = self.model(inputs).argmax(dim=-1).numpy()
        accuracies = compute_acc(preds, labels.numpy(), self.acc_strategy)
        for acc in accuracies:
            self.metrics["acc"].update(acc)

    def evaluate(self, loader):
        for inputs, labels in loader:
            self.prediction_step(inputs, labels)
        return {name: metric.compute() for name, metric in self.metrics.items()}


def make_dataset(size=16, length=5):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (size, length), generator=generator)
    labels[: size // 2] = -100  # the first half are prompts that have no answer yet
    return TensorDataset(torch.randn(size, length, 6, generator=generator), labels)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    dataset = make_dataset()
    share = len(dataset) // dist.get_world_size()
    first = dist.get_rank() * share
    loader = DataLoader(Subset(dataset, range(first, first + share)), batch_size=4)
    torch.manual_seed(0)
    print(SwiftTrainer(nn.Linear(6, 3)).evaluate(loader), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
