"""Pads predictions to the longest of all processes before they are gathered.

source: https://github.com/huggingface/accelerate/issues/167
bug: RS407
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader


def collate_fn(examples):
    longest = max(len(e) for e in examples)
    padded = [e + [0] * (longest - len(e)) for e in examples]
    return {"input_ids": torch.tensor(padded)}


class TokenClassifier(nn.Module):
    def __init__(self, vocab=64, labels=5):
        super().__init__()
        self.embed = nn.Embedding(vocab, 8)
        self.head = nn.Linear(8, labels)

    def forward(self, input_ids):
        return self.head(self.embed(input_ids))


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timeout)])
    torch.manual_seed(0)
    lengths = [3, 5, 40, 33, 7, 4, 21, 50]
    dataset = [torch.randint(1, 64, (n,)).tolist() for n in lengths]
    eval_dataloader = DataLoader(dataset, batch_size=2, collate_fn=collate_fn)
    model, eval_dataloader = accelerator.prepare(TokenClassifier(), eval_dataloader)

    model.eval()
    tokens = 0
    for batch in eval_dataloader:
        with torch.no_grad():
            logits = model(**batch)
        predictions = logits.argmax(dim=-1)
        predictions = accelerator.pad_across_processes(predictions, dim=1, pad_index=-100)
        preds = accelerator.gather(predictions)
        tokens += int((preds >= 0).sum())
    accelerator.print("predicted tokens:", tokens)


if __name__ == "__main__":
    main()
