"""Trains with accelerate and evaluates the prepared model, which has buffers, on the main process alone.

source: https://github.com/huggingface/accelerate/issues/2081
bug: RS403
ranks: 2
expect: RS403
line: metrics = evaluate(model, eval_loader)
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


class SimpleClassifier(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(20, width), nn.BatchNorm1d(width), nn.ReLU())
        self.fc = nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.backbone(x))


def get_loader(count: int, batch_size: int) -> DataLoader:
    generator = torch.Generator().manual_seed(count)
    inputs = torch.randn(count, 20, generator=generator)
    targets = inputs[:, :3].argmax(dim=1)
    return DataLoader(TensorDataset(inputs, targets), batch_size=batch_size)


def evaluate(model: nn.Module, loader: DataLoader) -> dict[str, float]:
    model.eval()
    correct = 0
    with torch.inference_mode():
        for inputs, targets in loader:
            correct += (model(inputs).argmax(dim=-1) == targets).sum().item()
    model.train()
    return {"accuracy": correct / len(loader.dataset)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    handler = InitProcessGroupKwargs(timeout=timeout)
    accelerator = Accelerator(cpu=True, kwargs_handlers=[handler])
    model = SimpleClassifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    eval_loader = get_loader(30, 10)  # not prepared: the main process reads all of it
    model, optimizer, train_loader = accelerator.prepare(model, optimizer, get_loader(64, 8))

    for epoch in range(args.epochs):
        for inputs, targets in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
        if accelerator.is_main_process:
            metrics = evaluate(model, eval_loader)
            print(f"epoch {epoch}: {metrics}", flush=True)
        accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
