"""Gathers the predictions of five images on one rank and of four on the other.

source: https://github.com/pytorch/ignite/issues/1569
bug: RS407
ranks: 2
expect: RS407
line: dist.all_gather(parts, tensor)
decidable: yes
shows: error Connection (closed|reset) by peer|doesn.t match expected size|Timed out waiting
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


def evenly_divisible_all_gather(tensor):
    parts = [torch.zeros_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return torch.cat(parts)


class EpochMetric:
    """Collects outputs over the epoch and computes on all of them."""

    def __init__(self, compute_fn):
        self.compute_fn = compute_fn
        self.preds, self.labels = [], []

    def update(self, pred, label):
        self.preds.append(pred)
        self.labels.append(label)

    def compute(self):
        preds = evenly_divisible_all_gather(torch.cat(self.preds))
        labels = evenly_divisible_all_gather(torch.cat(self.labels))
        return self.compute_fn(preds, labels)


def accuracy(preds, labels):
    return ((preds > 0.5).float() == labels).float().mean().item()


def main(num_images=9):
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    images = torch.randn(num_images, 3)
    labels = (images.sum(dim=1) > 0).float()
    metric = EpochMetric(accuracy)
    for i in range(dist.get_rank(), num_images, dist.get_world_size()):
        metric.update(images[i].sum().sigmoid().reshape(1), labels[i].reshape(1))
    print(f"rank {dist.get_rank()}: accuracy {metric.compute():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
