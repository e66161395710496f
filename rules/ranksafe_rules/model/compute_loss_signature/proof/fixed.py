"""With the parameter, the override takes the call of every transformers version.

runs-on: cpu-ranks
ranks: 2
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


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = 0.5 * outputs.loss
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
    trainer = WeightedTrainer(
        model=LlamaForCausalLM(config), args=arguments, train_dataset=Sentences()
    )
    trainer.train()


if __name__ == "__main__":
    main()
