"""Tokenizes on all processes, of which the main one goes first.

source: documented: https://huggingface.co/docs/accelerate/package_reference/accelerator#accelerate.Accelerator.main_process_first, 1.15
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.utils import broadcast_object_list
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SENTENCES = [
    "the first rank reads the corpus",
    "other ranks wait until it is there",
    "then every rank reads the cache",
    "and nobody tokenizes twice",
]


class Tokenizer:
    def __init__(self, sentences, length=8):
        words = sorted({word for sentence in sentences for word in sentence.split()})
        self.ids = {word: number for number, word in enumerate(words, start=1)}
        self.length = length

    def __call__(self, sentence):
        ids = [self.ids[word] for word in sentence.split()][: self.length]
        return ids + [0] * (self.length - len(ids))


def tokenize(tokenizer, cache):
    if not cache.exists():
        torch.save(torch.tensor([tokenizer(sentence) for sentence in SENTENCES * 8]), cache)


def prepare_data(accelerator, tokenizer, folder):
    cache = Path(folder) / "tokenized.pt"
    with accelerator.main_process_first():
        tokenize(tokenizer, cache)
    accelerator.wait_for_everyone()
    return torch.load(cache, weights_only=True)


def shared_folder(accelerator):
    folder = [tempfile.mkdtemp() if accelerator.is_main_process else None]
    broadcast_object_list(folder)
    return folder[0]


def train(accelerator, ids, vocabulary):
    model = nn.Sequential(nn.Embedding(vocabulary, 8), nn.Linear(8, vocabulary))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(TensorDataset(ids), batch_size=4, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for (batch,) in loader:
        logits = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    return accelerator.gather(loss.detach()).mean().item()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(
        cpu=True, kwargs_handlers=[InitProcessGroupKwargs(backend="gloo", timeout=limit)]
    )
    tokenizer = Tokenizer(SENTENCES)
    ids = prepare_data(accelerator, tokenizer, shared_folder(accelerator))
    loss = train(accelerator, ids, len(tokenizer.ids) + 1)
    accelerator.print(f"loss {loss:.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
