"""Connects to the generation server on the main process only; the rollout function asks it on all processes.

source: https://github.com/huggingface/trl/pull/5841
bug: RS409
ranks: 2
expect: RS409
file: openenv_incorrect.py
line: output = generation.vllm_client.generate(prompts, **generation_kwargs)
decidable: yes
shows: error AttributeError.*vllm_client
"""

import os
from datetime import timedelta

import openenv_incorrect as rollout
import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader


class VLLMClient:
    """Answers as a generation server would."""

    def generate(self, prompts, max_tokens=4):
        return [[(ord(c) + k) % 50 for k, c in enumerate(p[:max_tokens])] for p in prompts]


class VLLMGeneration:
    def __init__(self, accelerator, mode="server"):
        self.accelerator = accelerator
        self.mode = mode
        if self.mode == "server":
            if accelerator.is_main_process:
                self.vllm_client = VLLMClient()
            # others wait until the server is there
            accelerator.wait_for_everyone()


class GRPOTrainer:
    def __init__(self, accelerator, model, loader):
        self.accelerator = accelerator
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.model, self.optimizer, self.loader = accelerator.prepare(model, optimizer, loader)
        self.generation = VLLMGeneration(accelerator)

    def train(self):
        for prompts in self.loader:
            completions = rollout.generate_rollout_completions(self.generation, list(prompts))
            ids = torch.tensor(completions)
            rewards = (ids % 2 == 0).float().mean(dim=1)
            advantages = rewards - self.accelerator.gather(rewards).mean()
            logps = torch.log_softmax(self.model(nn.functional.one_hot(ids, 50).float()), dim=-1)
            loss = -(logps.gather(2, ids.unsqueeze(2)).mean(dim=(1, 2)) * advantages).mean()
            self.accelerator.backward(loss)
            self.optimizer.step()
            self.optimizer.zero_grad()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    prompts = ["guess the word", "open the door", "take the lamp", "go to the north"] * 2
    GRPOTrainer(accelerator, nn.Linear(50, 50), DataLoader(prompts, batch_size=2)).train()
    accelerator.end_training()


if __name__ == "__main__":
    main()
