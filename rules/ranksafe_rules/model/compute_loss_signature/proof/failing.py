"""A `compute_loss` written before transformers 4.46 does not know `num_items_in_batch`.

runs-on: cpu-ranks
ranks: 2
expect: exception TypeError: WeightedTrainer.compute_loss() got an unexpected keyword argument 'num_items_in_batch'
frame: trainer.train()
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
    def compute_loss(self, model, inputs, return_outputs=False):
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
