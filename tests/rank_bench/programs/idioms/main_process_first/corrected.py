"""The main process prepares the data first; accelerate's guards and decorators let one process write and print.

source: https://huggingface.co/docs/accelerate/v1.14.0/basic_tutorials/execution.md
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def preprocess(path: Path) -> torch.Tensor:
    if not path.exists():
        torch.save(torch.randn(32, 4), path)
    return torch.load(path)


def main() -> None:
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])

    @accelerator.on_main_process
    def write_summary(path: Path, loss: float) -> None:
        path.write_text(f"loss {loss:.3f}")

    cache = Path(tempfile.gettempdir()) / f"rank_bench_{os.environ['MASTER_PORT']}.pt"
    with accelerator.main_process_first():
        features = preprocess(cache)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(features), batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    losses = []
    for step, (batch,) in enumerate(loader):
        loss = model(batch).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(accelerator.gather(loss.detach()))
        if accelerator.is_local_main_process:
            print(f"step {step}: {loss.item():.3f}", flush=True)
    mean = torch.cat([loss.reshape(-1) for loss in losses]).mean().item()
    write_summary(cache.with_suffix(".txt"), mean)
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        cache.unlink()
    accelerator.end_training()


if __name__ == "__main__":
    main()
