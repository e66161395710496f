"""Early stopping looks at metrics of the outputs of all processes, which are gathered as objects.

source: https://github.com/huggingface/transformers/issues/17478
bug: RS404
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class EarlyStoppingCallback:
    def __init__(self, patience):
        self.patience, self.patience_counter, self.best_metric = patience, 0, None

    def on_evaluate(self, metrics):
        if self.best_metric is None or metrics["eval_f1"] > self.best_metric:
            self.best_metric, self.patience_counter = metrics["eval_f1"], 0
        else:
            self.patience_counter += 1
        return self.patience_counter >= self.patience


class SpanTrainer:
    def __init__(self, model, callback):
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        self.callback = callback

    def evaluate(self, features, targets):
        """Spans are lists of different lengths, no tensors."""
        shard = slice(self.rank, None, self.world_size)
        with torch.no_grad():
            scores = self.model.module(features[shard])
        outputs = [(row > 0).nonzero().flatten().tolist() for row in scores]
        expected = [(row > 0).nonzero().flatten().tolist() for row in targets[shard]]
        gathered = [None] * self.world_size
        dist.all_gather_object(gathered, (outputs, expected))
        outputs = [span for part, _ in gathered for span in part]
        expected = [span for _, part in gathered for span in part]
        shared = sum(len(set(a) & set(b)) for a, b in zip(outputs, expected, strict=True))
        total = sum(len(a) + len(b) for a, b in zip(outputs, expected, strict=True))
        return {"eval_f1": 2 * shared / max(total, 1)}

    def train(self, features, targets, epochs=12):
        for epoch in range(epochs):
            for start in range(self.rank * 4, len(features), self.world_size * 4):
                scores = self.model(features[start : start + 4])
                loss = (scores - targets[start : start + 4]).pow(2).mean()
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
            metrics = self.evaluate(features, targets)
            if self.callback.on_evaluate(metrics):
                break
        dist.barrier()
        print(f"rank {self.rank}: {epoch + 1} epochs, {metrics}", flush=True)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(2)
    features, targets = torch.randn(32, 6), torch.randn(32, 10)
    SpanTrainer(nn.Linear(6, 10), EarlyStoppingCallback(patience=2)).train(features, targets)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
