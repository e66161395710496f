"""A transformers Trainer with evaluation and checkpoints."""

import sys

import torch
from torch.utils.data import Dataset
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
)


class Rows(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        torch.manual_seed(index)
        ids = torch.randint(0, 50, (8,))
        return {"input_ids": ids, "labels": ids}


model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2))
arguments = TrainingArguments(
    output_dir=sys.argv[1],
    per_device_train_batch_size=2,
    gradient_accumulation_steps=2,
    max_steps=4,
    warmup_steps=2,
    logging_steps=1,
    save_steps=4,
    eval_strategy="steps",
    eval_steps=4,
    report_to="none",
    use_cpu="fake" not in sys.argv,
)
trainer = Trainer(model=model, args=arguments, train_dataset=Rows(), eval_dataset=Rows())
trainer.train()
trainer.save_model(sys.argv[1])
