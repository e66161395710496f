"""An accuracy in `compute_loss` compares the logits of one replica with the labels of the whole batch.

runs-on: emulated-dp
ranks: 2
requires: transformers==4.51.3
expect: exception RuntimeError: The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 0
frame: hits = outputs.logits.argmax(-1) == inputs["labels"]
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


class AccuracyTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        hits = outputs.logits.argmax(-1) == inputs["labels"]
        self.log({"accuracy": hits.float().mean().item()})
        return (loss, outputs) if return_outputs else loss


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
    trainer = AccuracyTrainer(
        model=LlamaForCausalLM(config), args=arguments, train_dataset=Sentences()
    )
    trainer.train()


if __name__ == "__main__":
    main()
