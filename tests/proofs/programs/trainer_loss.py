"""One optimizer step of a tiny Llama in a plain Trainer; prints what nn.DataParallel did with the batch.

The expectation depends on the version of transformers: tests/proofs/test_version_table.py has the table.
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

CONFIG = LlamaConfig(
    vocab_size=64,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=64,
    pad_token_id=1,
    bos_token_id=2,
    eos_token_id=3,
)


class Tokens(torch.utils.data.Dataset):
    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.rows = torch.randint(4, 60, (8, 12), generator=generator)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.rows[index], "labels": self.rows[index].clone()}


def main() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(CONFIG)
    rows_seen: list[int] = []

    def note_rows(module: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        rows_seen.append(len(kwargs["input_ids"]))

    model.register_forward_pre_hook(note_rows, with_kwargs=True)
    arguments = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=2,
        max_steps=1,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Tokens())
    trainer.train()
    print("n_gpu:", arguments.n_gpu)
    print("rows per replica:", rows_seen)
    print("loss:", trainer.state.log_history[0]["loss"])


if __name__ == "__main__":
    main()
