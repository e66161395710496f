"""Metrics whose state is reduced over the ranks."""

import torch
import torch.distributed as dist


class MeanMetric:
    """The mean of what all ranks have seen."""

    def __init__(self, nan_value=0.0):
        self.nan_value = nan_value
        self.state = 0.0
        self.count = 0

    def update(self, value):
        self.state = value + self.state
        self.count += 1

    def compute(self):
        tensor = torch.tensor([self.state, self.count])
        dist.all_reduce(tensor)
        total, count = tensor.tolist()
        return total / count if count else self.nan_value
