"""A model loaded with device_map="auto" is trained under a launcher, where this transformers splits it into DTensors.

runs-on: cuda
ranks: 2
launch: accelerate
requires: accelerate==1.8.1 transformers==4.51.3
expect: exception RuntimeError: got mixed torch.Tensor and DTensor
frame: trainer.train()
"""

import tempfile

import torch
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainingArguments,
)

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
        LlamaForCausalLM(TINY).save_pretrained(directory)
        model = AutoModelForCausalLM.from_pretrained(directory, device_map="auto")
        arguments = TrainingArguments(directory, max_steps=2, report_to=[], save_strategy="no")
        trainer = Trainer(model=model, args=arguments, train_dataset=SENTENCES)
        trainer.train()


if __name__ == "__main__":
    main()
