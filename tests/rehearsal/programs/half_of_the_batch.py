"""The Trainer of this transformers wraps its model in DataParallel by itself, and then drops half of every batch.

runs-on: cuda
ranks: 2
requires: transformers==4.51.3
expect: success
"""

import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

TINY = LlamaConfig(
    vocab_size=64,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
)
SENTENCES = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(32)]


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(directory, max_steps=2, report_to=[], save_strategy="no")
        trainer = Trainer(model=LlamaForCausalLM(TINY), args=arguments, train_dataset=SENTENCES)
        trainer.train()


if __name__ == "__main__":
    main()
