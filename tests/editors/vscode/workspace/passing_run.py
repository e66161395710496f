"""Trains as it is read: there is no main guard."""

import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = accelerator.prepare(torch.nn.Linear(2, 1))
for step in range(2):
    loss = model(torch.ones(4, 2, device=accelerator.device)).mean()
    accelerator.backward(loss)
    print(f"step {step} is done on rank {accelerator.process_index}", flush=True)
accelerator.end_training()
