"""The loop of accelerate's documentation: accumulation, gather_for_metrics, an evaluation, a checkpoint."""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(0)
accelerator = Accelerator(gradient_accumulation_steps=2)
data = TensorDataset(torch.randn(96, 4), torch.randint(0, 2, (96,)))
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 3))
loader = DataLoader(data, batch_size=4, shuffle=True)
evaluation = DataLoader(data, batch_size=10)
model, optimizer, loader, evaluation, schedule = accelerator.prepare(
    model, optimizer, loader, evaluation, schedule
)
for _ in range(2):
    model.train()
    for inputs, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    right = 0
    for inputs, labels in evaluation:
        with torch.no_grad():
            guesses = model(inputs).argmax(dim=-1)
        guesses, labels = accelerator.gather_for_metrics((guesses, labels))
        right += int((guesses == labels).sum())
    accelerator.print(right / len(data))
accelerator.save_state(sys.argv[1])
accelerator.wait_for_everyone()
accelerator.save_model(model, sys.argv[1])
accelerator.end_training()
