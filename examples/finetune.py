"""Fine-tune a causal language model on two lines of text. Works with `python`, fails with `accelerate launch`."""

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

LINES = ["one process, one GPU", "two processes, two GPUs"]


class Texts(torch.utils.data.Dataset):
    def __init__(self, tokenizer):
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        self.encoded = tokenizer(LINES, padding=True, return_tensors="pt")

    def __len__(self):
        return len(LINES)

    def __getitem__(self, index):
        ids = self.encoded["input_ids"][index]
        return {"input_ids": ids, "labels": ids}


def main():
    name = "sshleifer/tiny-gpt2"
    model = AutoModelForCausalLM.from_pretrained(
        name,
        torch_dtype=torch.float32,
        device_map="auto",  # every process spreads the whole model over all GPUs
    )
    trainer = Trainer(
        model=model,
        args=TrainingArguments("examples/out", per_device_train_batch_size=1, num_train_epochs=1),
        train_dataset=Texts(AutoTokenizer.from_pretrained(name)),
    )
    trainer.train()


if __name__ == "__main__":
    main()
