"""Gathers the validation losses of all processes before deciding to stop.

source: https://github.com/huggingface/accelerate/issues/226
bug: RS404
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
from torch.utils.data import DataLoader, TensorDataset


class MaskedModel(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, 16), nn.GELU(), nn.Linear(16, dim))

    def forward(self, inputs, labels):
        return nn.functional.mse_loss(self.encoder(inputs), labels)


def get_dataloader(size, noisy=False):
    generator = torch.Generator().manual_seed(size)
    inputs = torch.randn(size, 8, generator=generator)
    labels = inputs.flip(dims=[1])
    if noisy:  # every other group of four was labelled by somebody else
        labels.view(-1, 2, 4, 8)[:, 1] *= -1
    return DataLoader(TensorDataset(inputs, labels), batch_size=4)


def train(accelerator, num_train_epochs=6, eval_every=4, patience=2):
    model = MaskedModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, train_dataloader, eval_dataloader = accelerator.prepare(
        model, optimizer, get_dataloader(64), get_dataloader(32, noisy=True)
    )
    global_step, running_loss = 0, 0.0
    best_valid_loss, bad_evals = float("inf"), 0
    for epoch in range(num_train_epochs):
        model.train()
        for batch in train_dataloader:
            loss = model(*batch)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            # update running values
            running_loss += loss.item()
            global_step += 1
            # evaluation step
            if global_step % eval_every == 0:
                model.eval()
                valid_running_loss = 0.0
                for inputs in eval_dataloader:
                    with torch.no_grad():
                        loss = model(*inputs)
                    valid_running_loss += accelerator.gather(loss).mean().item()
                model.train()
                average_valid_loss = valid_running_loss / len(eval_dataloader)
                if average_valid_loss < best_valid_loss:
                    best_valid_loss, bad_evals = average_valid_loss, 0
                else:
                    bad_evals += 1
                if bad_evals >= patience:
                    print(f"Stopped early in epoch {epoch}", flush=True)
                    return model
    return model.eval()


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    torch.manual_seed(0)
    train(accelerator)
    accelerator.wait_for_everyone()
    accelerator.end_training()
