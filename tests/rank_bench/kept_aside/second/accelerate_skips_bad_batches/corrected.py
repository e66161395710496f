"""Training keeps batches that turn out to be bad, with a weight of zero.

source: https://github.com/huggingface/accelerate/issues/2258
bug: RS404
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Documents(Dataset):
    """Token ids of documents; some were scanned so badly that nothing but padding is left."""

    def __init__(self, size=48, length=10):
        generator = torch.Generator().manual_seed(7)
        self.ids = torch.randint(1, 50, (size, length), generator=generator)
        self.ids[12:16] = 0
        self.ids[33:40] = 0

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index].sum() % 2}


def is_bad(batch):
    return not batch["input_ids"].any()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    torch.manual_seed(0)
    model = nn.Sequential(nn.EmbeddingBag(50, 16, padding_idx=0), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, dataloader = accelerator.prepare(
        model, optimizer, DataLoader(Documents(), batch_size=4)
    )
    for epoch in range(2):
        used = 0
        for batch in dataloader:
            weight = 0.0 if is_bad(batch) else 1.0
            loss = nn.functional.cross_entropy(model(batch["input_ids"]), batch["labels"])
            accelerator.backward(weight * loss)
            optimizer.step()
            optimizer.zero_grad()
            used += weight
        accelerator.print(f"epoch {epoch}: {used} batches")
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
