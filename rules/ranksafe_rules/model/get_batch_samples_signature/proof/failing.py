"""A `get_batch_samples` with the signature of transformers < 4.50 is called with one argument more.

runs-on: cpu-ranks
ranks: 2
expect: exception TypeError: CountingTrainer.get_batch_samples() takes 3 positional arguments but 4 were given
frame: trainer.train()
"""

import itertools

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


class CountingTrainer(Trainer):
    def get_batch_samples(self, epoch_iterator, num_batches):
        batches = list(itertools.islice(epoch_iterator, num_batches))
        count = sum((batch["labels"] != -100).sum() for batch in batches)
        return batches, count.item()


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
    trainer = CountingTrainer(
        model=LlamaForCausalLM(config), args=arguments, train_dataset=Sentences()
    )
    trainer.train()


if __name__ == "__main__":
    main()
