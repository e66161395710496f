"""Evaluates by a step counter of its own, so that all processes evaluate at the same step.

source: https://github.com/huggingface/transformers/issues/31532
bug: RS401
ranks: 2
expect: clean
decidable: no: a disabled bar's counter stays zero, which only tqdm's own code says
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch.utils.data import DataLoader, TensorDataset
from tqdm.auto import tqdm


def evaluate(accelerator, model, dataloader):
    model.eval()
    losses = []
    for x, y in dataloader:
        with torch.no_grad():
            loss = torch.nn.functional.mse_loss(model(x), y)
        losses.append(accelerator.gather_for_metrics(loss.repeat(len(x))))
    accelerator.print("eval loss", torch.cat(losses).mean().item())
    model.train()


def main(num_epochs=2, eval_steps=3):
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timeout)])
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer, train_dataloader, eval_dataloader = accelerator.prepare(
        model, optimizer, DataLoader(data, batch_size=4), DataLoader(data, batch_size=8)
    )
    total_steps = num_epochs * len(train_dataloader)
    progress_bar = tqdm(range(total_steps), disable=not accelerator.is_main_process)
    completed_steps = 0
    for _ in range(num_epochs):
        for x, y in train_dataloader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            progress_bar.update(1)
            completed_steps += 1
            if completed_steps % eval_steps == 0:
                evaluate(accelerator, model, eval_dataloader)


if __name__ == "__main__":
    main()
