"""The main process broadcasts embeddings of a prompt into a buffer of the same shape on the others.

source: https://huggingface.co/docs/accelerate/main/en/usage_guides/debug
bug: RS415
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.utils import broadcast
from torch import nn

MAX_LENGTH, WIDTH = 5, 8
VALIDATION_PROMPT = "a cat that reads"


class TextEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, WIDTH)

    def forward(self, prompt):
        ids = [sum(word.encode()) % 64 for word in prompt.split()][:MAX_LENGTH]
        ids = [1, *ids] + [0] * (MAX_LENGTH - len(ids))
        return self.embedding(torch.tensor(ids))


@torch.no_grad()
def encode_prompt(accelerator):
    """The text encoder is large, so only the main process loads it."""
    if accelerator.is_main_process:
        embeddings = TextEncoder()(VALIDATION_PROMPT)
    else:
        embeddings = torch.zeros(1 + MAX_LENGTH, WIDTH)
    embeddings = broadcast(embeddings)
    return embeddings


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    embeddings = encode_prompt(accelerator)
    unet = nn.Sequential(nn.Linear(WIDTH, 16), nn.SiLU(), nn.Linear(16, WIDTH))
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-3)
    unet, optimizer = accelerator.prepare(unet, optimizer)
    for step in range(3):
        noise = torch.randn(4, WIDTH)
        loss = (unet(noise + embeddings.mean(0)) - noise).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        accelerator.print(f"step {step}: loss {loss.item():.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
