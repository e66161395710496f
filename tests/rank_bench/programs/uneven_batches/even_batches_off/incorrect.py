"""Train with accelerate and even_batches=False on an odd number of batches; one process has a batch more than the other.

source: https://github.com/huggingface/accelerate/pull/776
bug: RS406
ranks: 2
expect: RS406
line: for features, labels in dataloader:
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, DataLoaderConfiguration, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_dataloader(size=40, batch_size=8):
    generator = torch.Generator().manual_seed(4)
    features = torch.randn(size, 6, generator=generator)
    labels = (features[:, 0] > 0).long()
    return DataLoader(TensorDataset(features, labels), batch_size=batch_size, shuffle=False)


def create_accelerator():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    return Accelerator(
        cpu=True,
        dataloader_config=DataLoaderConfiguration(even_batches=False),
        kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)],
    )


def main():
    accelerator = create_accelerator()
    model = nn.Linear(6, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, dataloader = accelerator.prepare(model, optimizer, get_dataloader())
    criterion = nn.CrossEntropyLoss()
    for epoch in range(2):
        for features, labels in dataloader:
            optimizer.zero_grad()
            loss = criterion(model(features), labels)
            accelerator.backward(loss)
            optimizer.step()
        accelerator.wait_for_everyone()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
