"""A `compute_loss` hands the 0-d `num_items_in_batch` of transformers 4.50 to a model under nn.DataParallel.

runs-on: emulated-dp
ranks: 2
requires: transformers==4.50.3
expect: exception RuntimeError: chunk expects at least a 1-dimensional tensor
frame: outputs = model(**inputs, num_items_in_batch=num_items_in_batch)
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


class PlainLossTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs, num_items_in_batch=num_items_in_batch)
        return (outputs.loss, outputs) if return_outputs else outputs.loss


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
    trainer = PlainLossTrainer(
        model=LlamaForCausalLM(config), args=arguments, train_dataset=Sentences()
    )
    trainer.train()


if __name__ == "__main__":
    main()
