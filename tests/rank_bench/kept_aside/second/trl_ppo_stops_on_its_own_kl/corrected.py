"""PPO breaks its epochs when the KL divergence, averaged over all ranks, is too large.

source: https://github.com/huggingface/trl/pull/254
bug: RS404
ranks: 2
expect: clean
shows: fine
"""

import os
from dataclasses import dataclass
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn


@dataclass
class PPOConfig:
    learning_rate: float = 5e-2
    ppo_epochs: int = 4
    cliprange: float = 0.2
    early_stopping: bool = True
    target_kl: float = 0.02


class PPOTrainer:
    def __init__(self, config, model):
        limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        self.config = config
        self.accelerator = Accelerator(
            cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)]
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)

    def logprobs(self, queries, actions):
        logits = self.model(queries).log_softmax(-1)
        return logits.gather(1, actions.unsqueeze(1)).squeeze(1)

    def step(self, queries, actions, scores):
        with torch.no_grad():
            old_logprobs = self.logprobs(queries, actions)
        all_stats = []
        for _ in range(self.config.ppo_epochs):
            logprobs = self.logprobs(queries, actions)
            ratio = torch.exp(logprobs - old_logprobs)
            clipped = ratio.clamp(1 - self.config.cliprange, 1 + self.config.cliprange)
            loss = torch.max(-scores * ratio, -scores * clipped).mean()
            policykl = (0.5 * (logprobs - old_logprobs) ** 2).mean().detach()
            policykl = self.accelerator.reduce(policykl, reduction="mean")
            all_stats.append({"loss": loss.item(), "policykl": policykl.item()})
            if self.config.early_stopping and policykl > 1.5 * self.config.target_kl:
                self.optimizer.zero_grad()
                break
            self.accelerator.backward(loss)
            self.optimizer.step()
            self.optimizer.zero_grad()
        return all_stats


def main():
    torch.manual_seed(0)
    trainer = PPOTrainer(PPOConfig(), nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 6)))
    generator = torch.Generator().manual_seed(trainer.accelerator.process_index)
    for step in range(4):
        queries = torch.randn(8, 8, generator=generator)
        actions = torch.randint(0, 6, (8,), generator=generator)
        stats = trainer.step(queries, actions, torch.randn(8, generator=generator))
        trainer.accelerator.print(f"step {step}: {len(stats)} epochs, loss {stats[-1]['loss']:.3f}")
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()


if __name__ == "__main__":
    main()
