"""After an epoch only the local main process evaluates, with the prepared model and a loader of its own.

source: https://github.com/huggingface/accelerate/issues/157
bug: RS403
ranks: 2
expect: RS403
line: predictions = model(features).argmax(dim=-1)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.nn.functional as F
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.head = nn.Linear(32, 5)

    def forward(self, features):
        return self.head(self.encoder(features))


def get_dataloader(size, shuffle):
    generator = torch.Generator().manual_seed(size)
    features = torch.randn(size, 20, generator=generator)
    dataset = TensorDataset(features, features[:, :5].argmax(1))
    return DataLoader(dataset, batch_size=8, shuffle=shuffle)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    eval_loader = get_dataloader(32, shuffle=False)
    model, optimizer, train_loader = accelerator.prepare(
        model, optimizer, get_dataloader(64, shuffle=True)
    )
    for epoch in range(2):
        model.train()
        for features, labels in train_loader:
            loss = F.cross_entropy(model(features), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.is_local_main_process:
            model.eval()
            correct = 0
            with torch.no_grad():
                for features, labels in eval_loader:
                    predictions = model(features).argmax(dim=-1)
                    correct += (predictions == labels).sum().item()
            print(f"epoch {epoch}: accuracy {correct / 32:.2f}", flush=True)
        accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
