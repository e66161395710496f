"""The old `.item()` workaround meets a count with one entry per replica (transformers >= 4.57).

runs-on: emulated-dp
ranks: 2
requires: transformers==5.23.0
expect: exception RuntimeError: a Tensor with 2 elements cannot be converted to Scalar
frame: num_items_in_batch = num_items_in_batch.item()
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


class ItemTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        num_items_in_batch = num_items_in_batch.item()
        return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)


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
    trainer = ItemTrainer(
        model=LlamaForCausalLM(config), args=arguments, train_dataset=Sentences()
    )
    trainer.train()


if __name__ == "__main__":
    main()
