"""Pads what was picked across the processes before gathering it, and drops the padding.

source: https://github.com/openreasoner/openr/issues/83
bug: RS407
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, Dataset

STEP_TAG_ID, GOOD_ID, BAD_ID = 9, 7, 8


class StepDataset(Dataset):
    """Solutions whose steps end with a tag; the label at a tag says whether the step is good."""

    def __init__(self, size=16, length=12):
        self.samples = []
        for index in range(size):
            generator = torch.Generator().manual_seed(index)
            input_ids = torch.randint(0, 7, (length,), generator=generator)
            input_ids[2 :: 2 + index % 3] = STEP_TAG_ID
            good = torch.rand(length, generator=generator) > 0.5
            labels = torch.where(good, GOOD_ID, BAD_ID)
            self.samples.append((input_ids, labels.masked_fill(input_ids != STEP_TAG_ID, -100)))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


class RewardModel(nn.Module):
    def __init__(self, vocab=10, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.lm_head = nn.Linear(dim, vocab)

    def forward(self, input_ids):
        return self.lm_head(self.embed(input_ids))


def preprocess_logits_for_metrics(logits, labels):
    index = labels != -100
    logits = logits[index][:, [GOOD_ID, BAD_ID]]
    prob = torch.softmax(logits, dim=-1)
    return prob[:, 0], (labels[index] == GOOD_ID).float()


def evaluate(accelerator, model, loader):
    model.eval()
    hits = []
    for input_ids, labels in loader:
        with torch.no_grad():
            logits = model(input_ids)
        preds, refs = preprocess_logits_for_metrics(logits, labels)
        preds, refs = accelerator.pad_across_processes((preds, refs), pad_index=-1)
        preds, refs = accelerator.gather((preds, refs))
        preds, refs = preds[refs >= 0], refs[refs >= 0]
        hits.append(((preds > 0.5).float() == refs).float())
    return {"accuracy": torch.cat(hits).mean().item()}


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    loader = DataLoader(StepDataset(), batch_size=2)
    model, loader = accelerator.prepare(RewardModel(), loader)
    accelerator.print(evaluate(accelerator, model, loader))
    accelerator.end_training()


if __name__ == "__main__":
    main()
