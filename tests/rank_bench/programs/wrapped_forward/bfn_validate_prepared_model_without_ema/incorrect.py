"""Validates on the main process with the prepared model when there is no averaged one.

source: https://github.com/nnaisense/bayesian-flow-networks/pull/6
bug: RS403
ranks: 2
expect: RS403
line: val_loss = validate(model, ema, val_batches)
decidable: yes
shows: error Timed out waiting|Connection (closed|reset) by peer
"""

import copy
import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn


class TimeNet(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.register_buffer("freqs", torch.arange(1.0, dim + 1))
        self.out = nn.Linear(dim, 1)

    def forward(self, t):
        return self.out(torch.sin(t * self.freqs))


def validate(model, ema, batches):
    model_to_eval = ema if ema is not None else model
    model_to_eval.eval()
    with torch.no_grad():
        losses = [model_to_eval(t).pow(2).mean() for t in batches]
    return torch.stack(losses).mean().item()


def train(use_ema=False, n_training_steps=9, val_interval=3):
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timeout)])
    torch.manual_seed(0)
    model = TimeNet()
    ema = copy.deepcopy(model) if use_ema else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    val_batches = [torch.rand(4, 1) for _ in range(2)]
    for step in range(1, n_training_steps + 1):
        model.train()
        loss = model(torch.rand(4, 1)).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if step % val_interval == 0 and accelerator.is_main_process:
            val_loss = validate(model, ema, val_batches)
            print(f"step {step}: validation loss {val_loss:.4f}")


if __name__ == "__main__":
    train()
