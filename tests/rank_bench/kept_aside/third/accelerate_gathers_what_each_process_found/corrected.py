"""Gathers the scores of the spans that a process found after padding, and drops the padding.

source: https://github.com/huggingface/accelerate/issues/235
bug: RS407
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SpanScorer(nn.Module):
    def __init__(self, size=6):
        super().__init__()
        self.start = nn.Linear(size, 1)
        self.end = nn.Linear(size, 1)

    def forward(self, tokens):
        return (self.start(tokens) + self.end(tokens).roll(-1, dims=1)).squeeze(-1)


class Evaluator:
    def __init__(self, accelerator, model, threshold=0.5):
        self.accelerator = accelerator
        self.model = model
        self.threshold = threshold

    @torch.no_grad()
    def spans(self, dataloader):
        self.model.eval()
        found = []
        for (tokens,) in dataloader:
            scores = self.model(tokens)
            found.append(scores[scores > self.threshold])
        padded = self.accelerator.pad_across_processes(torch.cat(found), pad_index=torch.nan)
        scores = self.accelerator.gather(padded)
        return scores[~scores.isnan()]

    def report(self, dataloader):
        scores = self.spans(dataloader)
        self.accelerator.print(f"{len(scores)} spans, mean score {scores.mean().item():.3f}")


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    torch.manual_seed(4)
    model = SpanScorer()
    dataloader = DataLoader(TensorDataset(torch.randn(40, 11, 6)), batch_size=5)
    model, dataloader = accelerator.prepare(model, dataloader)
    Evaluator(accelerator, model).report(dataloader)
    accelerator.end_training()


if __name__ == "__main__":
    main()
