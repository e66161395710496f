"""Gather generated token ids with accelerate after padding them to the longest of all processes.

source: https://github.com/huggingface/accelerate/issues/1326
bug: RS407
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader

EOS, PAD = 15, 0


class CountingModel(nn.Module):
    """Continues each sequence by the next number, until all have reached EOS."""

    def __init__(self):
        super().__init__()
        self.step = nn.Parameter(torch.ones(1))

    @torch.no_grad()
    def generate(self, input_ids, max_length=20):
        while input_ids.size(1) < max_length and (input_ids[:, -1] < EOS).any():
            following = (input_ids[:, -1:] + self.step.long()).clamp(max=EOS)
            input_ids = torch.cat([input_ids, following], dim=1)
        return input_ids


def evaluate(accelerator, model, dataloader):
    sequences = []
    for input_ids in dataloader:
        generated = accelerator.unwrap_model(model).generate(input_ids)
        generated = accelerator.pad_across_processes(generated, dim=1, pad_index=PAD)
        generated = accelerator.gather(generated)
        sequences.extend(generated.tolist())
    return sequences


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    prompts = torch.tensor([[1, 2], [3, 4], [8, 9], [10, 11]])
    model, dataloader = accelerator.prepare(CountingModel(), DataLoader(prompts, batch_size=2))
    sequences = evaluate(accelerator, model, dataloader)
    if accelerator.is_main_process:
        for sequence in sequences:
            print([token for token in sequence if token != PAD])
    accelerator.end_training()


if __name__ == "__main__":
    main()
