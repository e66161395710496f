"""Compute the gradient norm on the main process only, and log it on all: the other processes have no such variable.

source: https://github.com/huggingface/finetrainers/pull/105
bug: RS409
ranks: 2
expect: RS409
line: logs = {"loss": loss.item(), "grad_norm": grad_norm}
decidable: yes
shows: error UnboundLocalError.*grad_norm
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_gradient_norm(parameters):
    norms = [parameter.grad.norm() for parameter in parameters if parameter.grad is not None]
    return torch.stack(norms).norm().item()


def get_dataloader():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(64, 8, generator=generator)
    return DataLoader(TensorDataset(features, features.sum(dim=1)), batch_size=8)


def train(accelerator, max_grad_norm=1.0):
    model = nn.Linear(8, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, dataloader = accelerator.prepare(model, optimizer, get_dataloader())
    history = []
    for step, (features, targets) in enumerate(dataloader):
        optimizer.zero_grad()
        loss = (model(features).squeeze(1) - targets).pow(2).mean()
        accelerator.backward(loss)
        if accelerator.is_main_process:
            grad_norm = get_gradient_norm(model.parameters())
        accelerator.clip_grad_norm_(model.parameters(), max_grad_norm)
        optimizer.step()
        logs = {"loss": loss.item(), "grad_norm": grad_norm}
        accelerator.log(logs, step=step)
        history.append(logs)
    return history


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    history = train(accelerator)
    accelerator.wait_for_everyone()
    accelerator.print(f"{len(history)} steps, last: {history[-1]}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
