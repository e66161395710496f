"""Only the main process gets a client of the generation server; all processes generate with it.

source: https://github.com/huggingface/trl/issues/5314
bug: RS409
ranks: 2
expect: RS409
line: outputs = self.client.generate(prompts, self.max_tokens)
decidable: yes
shows: error AttributeError.*client
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch.utils.data import DataLoader


class GenerationClient:
    """Stands for a server on another machine, which takes one connection."""

    def __init__(self, base_url):
        self.base_url = base_url
        self.requests = 0

    def generate(self, prompts, max_tokens):
        self.requests += 1
        return [[len(prompt) % 7 + i for i in range(max_tokens)] for prompt in prompts]


class ServerGeneration:
    def __init__(self, accelerator, base_url="http://localhost:8888", max_tokens=5):
        self.accelerator = accelerator
        self.max_tokens = max_tokens
        if accelerator.is_main_process:
            self.client = GenerationClient(base_url)
        accelerator.wait_for_everyone()

    def generate(self, prompts):
        outputs = self.client.generate(prompts, self.max_tokens)
        return [torch.tensor(output) for output in outputs]


def reward(completions):
    return torch.stack([completion.float().mean() for completion in completions])


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    dataset = [f"Question {number}: what is {number} times {number}?" for number in range(12)]
    loader = accelerator.prepare(DataLoader(dataset, batch_size=3))
    generation = ServerGeneration(accelerator)
    for step, prompts in enumerate(loader):
        completions = generation.generate(prompts)
        rewards = accelerator.gather(reward(completions))
        accelerator.print(f"step {step}: mean reward {rewards.mean().item():.2f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
