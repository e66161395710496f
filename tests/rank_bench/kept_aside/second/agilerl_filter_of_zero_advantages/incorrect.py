"""Drops samples without advantage; a rank that has no other waits for everyone and returns, the others train.

source: https://github.com/AgileRL/AgileRL/pull/660
bug: RS401
ranks: 2
expect: RS401
line: self.accelerator.wait_for_everyone()
decidable: yes
shows: hang
"""

import os
import warnings
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader

VOCABULARY = 12


class GRPO:
    def __init__(self, group_size=4, adv_filter_eps=1e-4):
        limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        self.accelerator = Accelerator(
            cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)]
        )
        self.group_size, self.adv_filter_eps = group_size, adv_filter_eps
        torch.manual_seed(3)
        actor = nn.Sequential(nn.Embedding(VOCABULARY, 16), nn.Linear(16, VOCABULARY))
        optimizer = torch.optim.AdamW(actor.parameters(), lr=1e-3)
        self.actor, self.optimizer = self.accelerator.prepare(actor, optimizer)

    def rollout(self, limit):
        """Completions of a prompt that asks for tokens below a limit, and their rewards."""
        completions = torch.randint(0, VOCABULARY, (self.group_size, 6))
        return completions, (completions < limit).float().mean(1)

    def learn(self, completions, rewards):
        advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-8)
        keep = advantages.abs() > self.adv_filter_eps
        if not keep.any():
            warnings.warn("All samples were filtered out, the update is skipped.")
            self.accelerator.wait_for_everyone()
            return 0.0
        completions, advantages = completions[keep], advantages[keep]
        log_probs = self.actor(completions).log_softmax(-1)
        log_probs = log_probs.gather(-1, completions.unsqueeze(-1)).squeeze(-1)
        loss = -(log_probs.mean(1) * advantages).mean()
        self.accelerator.backward(loss)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()


def main():
    agent = GRPO()
    prompts = agent.accelerator.prepare(DataLoader([4, 6, 12, 5, 7, 3], batch_size=1))
    for step, limit in enumerate(prompts):
        completions, rewards = agent.rollout(limit)
        loss = agent.learn(completions, rewards)
        agent.accelerator.print(f"step {step}: loss {loss:.3f}")
    agent.accelerator.wait_for_everyone()
    agent.accelerator.end_training()


if __name__ == "__main__":
    main()
