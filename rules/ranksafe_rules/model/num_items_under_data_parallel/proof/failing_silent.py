"""The count of length one of transformers 4.51 makes nn.DataParallel run one replica: half of each batch is lost.

runs-on: emulated-dp
ranks: 2
requires: transformers==4.51.3
expect: output trained on 2 of 4 rows, loss 1.9
"""

import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Sentences(Dataset):
    def __init__(self):
        self.tokens = torch.randint(4, 64, (16, 12), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


class PlainLossTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs, num_items_in_batch=num_items_in_batch)
        return (outputs.loss, outputs) if return_outputs else outputs.loss


def main():
    torch.manual_seed(0)
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
    rows = []
    model.register_forward_pre_hook(
        lambda module, args, kwargs: rows.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    trainer = PlainLossTrainer(model=model, args=arguments, train_dataset=Sentences())
    trainer.train()
    loss = trainer.state.log_history[0]["loss"]
    print(f"trained on {sum(rows)} of {arguments.train_batch_size} rows, loss {loss}")


if __name__ == "__main__":
    main()
