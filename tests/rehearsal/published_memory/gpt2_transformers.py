"""transformers' GPT-2 124M in float32 on 4 sequences of 512 random tokens, five steps of AdamW; ``--checkpoint``."""

import sys

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config()
model = GPT2LMHeadModel(config)
if "--checkpoint" in sys.argv:
    model.gradient_checkpointing_enable()
model = model.to("cuda").train()
rows = [torch.randint(0, config.vocab_size, (512,)) for _ in range(20)]
loader = DataLoader([{"input_ids": row, "labels": row.clone()} for row in rows], batch_size=4)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for batch in loader:
    batch = {name: value.to("cuda") for name, value in batch.items()}
    optimizer.zero_grad()
    outputs = model(input_ids=batch["input_ids"], labels=batch["labels"])
    loss = outputs.loss
    loss.backward()
    optimizer.step()
    print(loss.item())
