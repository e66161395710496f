"""The Hugging Face Trainer on a model small enough for a test; saving would show in the folder given."""

import pathlib
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

config = LlamaConfig(
    vocab_size=32,
    hidden_size=16,
    intermediate_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    max_position_embeddings=16,
)
samples = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(64)]
arguments = TrainingArguments(
    output_dir=sys.argv[1],
    per_device_train_batch_size=2,
    num_train_epochs=50,
    save_strategy="epoch",
    report_to=[],
    disable_tqdm=True,
)
trainer = Trainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=samples)
trainer.train()
pathlib.Path(sys.argv[1], "after-training").touch()
