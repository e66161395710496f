"""Gathers loss and accuracy of a batch for the log, inside the block of the main process.

source: https://github.com/huggingface/accelerate/issues/2785
bug: RS401
ranks: 2
expect: RS401
line: losses.append(accelerator.gather_for_metrics(loss.detach()).mean())
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 2
GRADIENT_ACCUM_STEPS = 2
BATCH_SIZE = 8

limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
accelerator = Accelerator(
    cpu=True,
    gradient_accumulation_steps=GRADIENT_ACCUM_STEPS,
    kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)],
)
torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 4, 32), nn.ReLU(), nn.Linear(32, 10))
trainset = TensorDataset(torch.randn(64, 3, 4, 4), torch.randint(0, 10, (64,)))
trainloader = DataLoader(trainset, batch_size=BATCH_SIZE // GRADIENT_ACCUM_STEPS, shuffle=True)
loss_fn = nn.CrossEntropyLoss()
optimizer = optim.AdamW(model.parameters(), lr=1e-3)
model, optimizer, trainloader = accelerator.prepare(model, optimizer, trainloader)

for epoch in range(EPOCHS):
    losses, accuracies = [], []
    model.train()
    for images, targets in trainloader:
        with accelerator.accumulate(model):
            outputs = model(images)
            loss = loss_fn(outputs, targets)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
        accuracy = (outputs.argmax(dim=1) == targets).float().mean()
        if accelerator.is_main_process:
            losses.append(accelerator.gather_for_metrics(loss.detach()).mean())
            accuracies.append(accelerator.gather_for_metrics(accuracy).mean())
    if accelerator.is_main_process:
        print(
            f"epoch {epoch}: loss {torch.stack(losses).mean():.3f}, "
            f"accuracy {torch.stack(accuracies).mean():.3f}",
            flush=True,
        )

accelerator.wait_for_everyone()
accelerator.end_training()
