"""Tokenizes a corpus on the main process first; main_process_first makes the others wait for it.

source: https://github.com/huggingface/accelerate/pull/98
bug: RS401
ranks: 2
expect: clean
decidable: yes
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


def tokenize(cache_file: Path) -> None:
    if cache_file.exists():
        return
    generator = torch.Generator().manual_seed(1)
    torch.save(torch.randint(0, 32, (48, 12), generator=generator), cache_file)


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    kwargs = InitProcessGroupKwargs(timeout=timeout)
    accelerator = Accelerator(cpu=True, kwargs_handlers=[kwargs])

    port = os.environ["MASTER_PORT"]
    cache_file = Path(tempfile.gettempdir()) / f"tokens-{port}.pt"
    with accelerator.main_process_first():
        tokenize(cache_file)

    model = nn.Sequential(nn.Embedding(32, 16), nn.Linear(16, 32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.load(cache_file) if cache_file.exists() else torch.zeros(48, 12).long()
    loader = DataLoader(TensorDataset(tokens), batch_size=6, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    model.train()
    for (batch,) in loader:
        logits = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.print(f"final loss {loss.item():.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
