"""The Trainer gets the plain model and places it itself.

runs-on: emulated-dp
ranks: 2
requires: transformers==5.23.0
expect: success
"""

import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Sentences(Dataset):
    def __init__(self):
        self.tokens = torch.randint(4, 64, (16, 12))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def main():
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    arguments = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=2,
        max_steps=1,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
    )
    model = LlamaForCausalLM(config)
    trainer = Trainer(model=model, args=arguments, train_dataset=Sentences())
    trainer.train()


if __name__ == "__main__":
    main()
