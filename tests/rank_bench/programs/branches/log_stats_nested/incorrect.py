"""Logs PPO statistics; the queries are gathered three branches deep, one of which is the main process's.

source: https://github.com/huggingface/trl/issues/1103
bug: RS401
ranks: 2
expect: RS401
line: queries = gather_object(batch["query"])
decidable: yes
shows: hang
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs, gather_object
from torch import nn


@dataclass
class PPOConfig:
    log_with: str | None = "wandb"
    steps: int = 3
    batch_size: int = 4


class PPOTrainer:
    def __init__(self, config: PPOConfig, model: nn.Module) -> None:
        self.config = config
        timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        kwargs = InitProcessGroupKwargs(timeout=timeout)
        self.accelerator = Accelerator(cpu=True, kwargs_handlers=[kwargs])
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.history: list[dict[str, Any]] = []

    def step(self, scores: torch.Tensor) -> dict[str, float]:
        loss = (self.model(scores) - scores).pow(2).mean()
        self.accelerator.backward(loss)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return {"ppo/loss/total": loss.item()}

    def log_stats(self, stats: dict[str, float], batch: dict[str, list[str]]) -> None:
        logs: dict[str, Any] = dict(stats)
        if self.config.log_with is not None:
            if self.accelerator.is_main_process:
                if "query" in batch:
                    queries = gather_object(batch["query"])
                    logs["game_log"] = queries
                self.history.append(logs)


def main() -> None:
    config = PPOConfig()
    trainer = PPOTrainer(config, nn.Linear(8, 8))
    for step in range(config.steps):
        names = [f"query {step}.{i}" for i in range(config.batch_size)]
        stats = trainer.step(torch.randn(config.batch_size, 8))
        trainer.log_stats(stats, {"query": names})
    trainer.accelerator.print(f"{len(trainer.history)} logs")
    trainer.accelerator.end_training()


if __name__ == "__main__":
    main()
