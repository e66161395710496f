"""Logs the metrics of an evaluator, which only rank 0 has; the others log an empty dictionary, and each entry is gathered.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/7129
bug: RS406
ranks: 2
expect: RS406
line: for key, value in metrics.items():
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class COCOEvaluator:
    """Gathers the predictions of all ranks; rank 0 evaluates them."""

    def __init__(self):
        self._predictions = []

    def process(self, inputs, outputs):
        self._predictions.extend((outputs.argmax(dim=1) == inputs).tolist())

    def evaluate(self):
        rank, world_size = dist.get_rank(), dist.get_world_size()
        predictions = [None] * world_size if rank == 0 else None
        dist.gather_object(self._predictions, predictions, dst=0)
        if rank != 0:
            return {}
        merged = [hit for part in predictions for hit in part]
        return {"AP": sum(merged) / len(merged), "count": float(len(merged))}


class LoggerConnector:
    def log_metrics(self, metrics):
        gathered = {}
        for key, value in metrics.items():
            values = [torch.zeros(()) for _ in range(dist.get_world_size())]
            dist.all_gather(values, torch.tensor(value))
            gathered[key] = torch.stack(values).mean().item()
        return gathered


class GeneralizedRCNNTask:
    def __init__(self):
        self.model = nn.Linear(6, 4)
        self.evaluator = COCOEvaluator()
        self.connector = LoggerConnector()

    def log_dict(self, metrics):
        for name, value in sorted(self.connector.log_metrics(metrics).items()):
            print(f"{name}: {value:.3f}", flush=True)

    def validation_step(self, batch):
        images, labels = batch
        self.evaluator.process(labels, self.model(images))

    def validation_epoch_end(self):
        res = self.evaluator.evaluate()
        self.log_dict(res)


def val_batches(rank, count=3):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(count):
        images = torch.randn(4, 6, generator=generator)
        yield images, torch.randint(4, (4,), generator=generator)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    task = GeneralizedRCNNTask()
    with torch.no_grad():
        for batch in val_batches(dist.get_rank()):
            task.validation_step(batch)
    task.validation_epoch_end()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
