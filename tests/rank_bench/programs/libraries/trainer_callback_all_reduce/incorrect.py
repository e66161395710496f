"""A Trainer callback sums the tokens of all ranks where it logs them, on the world's first process only.

source: https://github.com/unslothai/unsloth-zoo/pull/873
bug: RS401
ranks: 2
expect: RS401
line: dist.all_reduce(total)
decidable: yes
shows: hang
"""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments


class TokenCounter(TrainerCallback):
    """Logs how many tokens all ranks have seen."""

    def __init__(self, tokens_per_step: int) -> None:
        self.tokens_per_step = tokens_per_step
        self.seen = 0

    def on_step_end(self, args, state, control, **kwargs):
        self.seen += self.tokens_per_step

    def on_train_end(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            total = torch.tensor(self.seen)
            dist.all_reduce(total)
            print(f"step {state.global_step}: {total.item()} tokens", flush=True)


class Regression(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 1)

    def forward(self, features: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.linear(features).squeeze(1)
        return {"loss": (logits - labels).pow(2).mean(), "logits": logits}


def main() -> None:
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        max_steps=3,
        per_device_train_batch_size=2,
        use_cpu=True,
        ddp_backend="gloo",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    data = [{"features": torch.randn(8), "labels": torch.randn(())} for _ in range(32)]
    trainer = Trainer(Regression(), args, train_dataset=data, callbacks=[TokenCounter(16)])
    trainer.train()
    trainer.accelerator.wait_for_everyone()


if __name__ == "__main__":
    main()
