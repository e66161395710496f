"""An accelerate script draws samples with the prepared model in a function that all but the main process leave early.

source: https://github.com/huggingface/accelerate/issues/2081
bug: RS403
ranks: 2
expect: RS403
line: grid = model(latents)
decidable: yes
shows: hang
"""

import argparse
import os
from datetime import timedelta

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample-every", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-2)
    return parser.parse_args()


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Linear(16, 9))

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        return self.layers(latents)


@torch.no_grad()
def log_samples(accelerator: Accelerator, model: nn.Module, step: int) -> None:
    if not accelerator.is_main_process:
        return
    latents = torch.randn(4, 4)
    grid = model(latents)
    print(f"step {step}: samples of {tuple(grid.shape)}", flush=True)


def main() -> None:
    args = parse_args()
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    model = Decoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loader = DataLoader(TensorDataset(torch.randn(48, 4), torch.randn(48, 9)), batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for step, (latents, images) in enumerate(loader, start=1):
        loss = (model(latents) - images).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if step % args.sample_every == 0:
            log_samples(accelerator, model, step)
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
