"""A training loop with accelerate, after its quick tour."""

import torch
from accelerate import Accelerator
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer

accelerator = Accelerator()
tokenizer = AutoTokenizer.from_pretrained("bert-base-cased")
dataset = load_dataset("glue", "mrpc", split="train")
dataset = dataset.map(
    lambda rows: tokenizer(
        rows["sentence1"], rows["sentence2"], truncation=True, padding="max_length", max_length=128
    ),
    batched=True,
)
dataset = dataset.rename_column("label", "labels")
dataset.set_format("torch", columns=["input_ids", "attention_mask", "token_type_ids", "labels"])
training_dataloader = DataLoader(dataset, shuffle=True, batch_size=16)
model = AutoModelForSequenceClassification.from_pretrained("bert-base-cased")
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer)

model, optimizer, training_dataloader, scheduler = accelerator.prepare(
    model, optimizer, training_dataloader, scheduler
)
for batch in training_dataloader:
    optimizer.zero_grad()
    loss = model(**batch).loss
    accelerator.backward(loss)
    optimizer.step()
    scheduler.step()
