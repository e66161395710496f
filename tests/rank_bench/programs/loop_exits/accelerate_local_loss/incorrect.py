"""An accelerate loop stops as soon as the loss of the process's own batch is small; the other process goes on to accelerator.backward.

source: https://github.com/huggingface/accelerate/pull/1940
bug: RS404
ranks: 2
expect: RS404
line: break
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_dataloader(batch_size=4, batches=16):
    generator = torch.Generator().manual_seed(11)
    features = torch.randn(batch_size * batches, 6, generator=generator)
    labels = features.sum(dim=1, keepdim=True)
    easy = torch.arange(len(features)) // batch_size % 2 == 1
    features[easy] *= 0.1
    labels[easy] *= 0.1
    return DataLoader(TensorDataset(features, labels), batch_size=batch_size, shuffle=False)


def should_do_early_stopping(loss, threshold=0.1):
    return loss.item() < threshold


def training_function():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_function = nn.MSELoss()
    model, optimizer, dataloader = accelerator.prepare(model, optimizer, get_dataloader())
    for features, labels in dataloader:
        optimizer.zero_grad()
        loss = loss_function(model(features), labels)
        accelerator.backward(loss)
        optimizer.step()
        if should_do_early_stopping(loss):
            break
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        print("weights:", accelerator.unwrap_model(model).weight.tolist())
    accelerator.end_training()


if __name__ == "__main__":
    training_function()
