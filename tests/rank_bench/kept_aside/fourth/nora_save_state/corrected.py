"""Calls save_state on all processes and writes the summary on the main process.

source: https://github.com/declare-lab/nora/issues/8
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from datetime import timedelta

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs, ProjectConfiguration
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class TrainingConfig:
    output_dir: str
    per_device_batch_size: int = 4
    learning_rate: float = 1e-3
    max_train_steps: int = 8
    checkpoint_save_frequency: int = 4


class ActionHead(nn.Module):
    def __init__(self, hidden=12, actions=7):
        super().__init__()
        self.proj = nn.Linear(hidden, actions)

    def forward(self, hidden_states, labels):
        return nn.functional.mse_loss(self.proj(hidden_states), labels)


def load_and_prepare_dataset():
    generator = torch.Generator().manual_seed(0)
    return TensorDataset(
        torch.randn(64, 12, generator=generator), torch.randn(64, 7, generator=generator)
    )


def train(config):
    accelerator = Accelerator(
        cpu=True,
        project_config=ProjectConfiguration(
            project_dir=config.output_dir, automatic_checkpoint_naming=True, total_limit=2
        ),
        kwargs_handlers=[
            InitProcessGroupKwargs(
                timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
            )
        ],
    )
    model = ActionHead()
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    loader = DataLoader(load_and_prepare_dataset(), batch_size=config.per_device_batch_size)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    completed_steps, total_loss = 0, 0.0
    while completed_steps < config.max_train_steps:
        for hidden_states, labels in loader:
            optimizer.zero_grad()
            loss = model(hidden_states, labels)
            accelerator.backward(loss)
            optimizer.step()
            completed_steps += 1
            total_loss += loss.item()
            if completed_steps % config.checkpoint_save_frequency == 0:
                accelerator.print(f"Saving after {completed_steps} steps")
                accelerator.save_state()
                if accelerator.is_main_process:
                    summary = {"steps": completed_steps, "train_loss": total_loss}
                    with open(os.path.join(config.output_dir, "summary.jsonl"), "a") as f:
                        f.write(json.dumps(summary) + "\n")
            if completed_steps >= config.max_train_steps:
                break
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        shutil.rmtree(config.output_dir, ignore_errors=True)
    accelerator.end_training()


if __name__ == "__main__":
    folder = os.path.join(tempfile.gettempdir(), f"nora_{os.environ['MASTER_PORT']}")
    os.makedirs(folder, exist_ok=True)
    train(TrainingConfig(output_dir=folder))
