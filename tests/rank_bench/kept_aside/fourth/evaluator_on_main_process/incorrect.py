"""Runs the evaluator on the main process only; the choice of the best metric looks for its value on all processes.

source: https://github.com/huggingface/sentence-transformers/pull/3994
bug: RS409
ranks: 2
expect: RS409
line: metric_value = metrics[metric_to_check]
decidable: yes
shows: error KeyError: 'eval_spearman'
"""

import os
from dataclasses import dataclass, field
from datetime import timedelta

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EmbeddingSimilarityEvaluator:
    def __init__(self, pairs, scores):
        self.pairs, self.scores = pairs, scores

    def __call__(self, model):
        with torch.no_grad():
            left, right = (nn.functional.normalize(model(part)) for part in self.pairs)
        cosine = (left * right).sum(dim=1)
        ranks = torch.stack([x.argsort().argsort().float() for x in (cosine, self.scores)])
        return {"spearman": torch.corrcoef(ranks)[0, 1].item()}


@dataclass
class EvalLoopOutput:
    num_samples: int
    metrics: dict = field(default_factory=dict)


class SentenceTransformerTrainer:
    def __init__(self, accelerator, model, loader, evaluator, metric_for_best_model="spearman"):
        self.accelerator = accelerator
        self.evaluator = evaluator
        self.metric_for_best_model = metric_for_best_model
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        self.model, self.optimizer, self.loader = accelerator.prepare(model, optimizer, loader)
        self.best_metric = None

    def is_world_process_zero(self):
        return self.accelerator.is_main_process

    def evaluation_loop(self):
        output = EvalLoopOutput(num_samples=len(self.evaluator.scores))
        if self.is_world_process_zero():
            evaluator_metrics = self.evaluator(self.accelerator.unwrap_model(self.model))
            output.metrics.update({f"eval_{k}": v for k, v in evaluator_metrics.items()})
        return output

    def _determine_best_metric(self, metrics):
        metric_to_check = f"eval_{self.metric_for_best_model}"
        metric_value = metrics[metric_to_check]
        if self.best_metric is None or metric_value > self.best_metric:
            self.best_metric = metric_value

    def train(self, epochs=2):
        for epoch in range(epochs):
            for anchor, positive in self.loader:
                out = self.model(torch.cat([anchor, positive]))
                left, right = nn.functional.normalize(out).chunk(2)
                loss = nn.functional.cross_entropy(left @ right.T * 20, torch.arange(len(left)))
                self.accelerator.backward(loss)
                self.optimizer.step()
                self.optimizer.zero_grad()
            self._determine_best_metric(self.evaluation_loop().metrics)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    generator = torch.Generator().manual_seed(0)
    anchors, noise = torch.randn(2, 32, 6, generator=generator)
    loader = DataLoader(TensorDataset(anchors, anchors + 0.1 * noise), batch_size=4)
    evaluator = EmbeddingSimilarityEvaluator((anchors, noise), torch.arange(32.0))
    trainer = SentenceTransformerTrainer(accelerator, nn.Linear(6, 4), loader, evaluator)
    trainer.train()
    accelerator.print(f"best {trainer.best_metric:.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
