"""Saves an emergency checkpoint when training fails, and waits for ranks on which nothing has failed.

source: https://github.com/huggingface/transformers/pull/39140
bug: RS410
ranks: 2
expect: RS410
line: dist.barrier()
decidable: yes
shows: hang
"""

import os
import sys
import tempfile
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Conversations(Dataset):
    """Token ids; one of those of the second rank is longer than the table of positions."""

    def __init__(self, rank):
        self.lengths = [9, 7, 8, 6]
        if rank == 1:
            self.lengths[2] = 21

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        return torch.arange(self.lengths[index]) % 13


class Transformer(nn.Module):
    def __init__(self, positions=16, width=8):
        super().__init__()
        self.tokens = nn.Embedding(13, width)
        self.positions = nn.Embedding(positions, width)
        self.head = nn.Linear(width, 13)

    def forward(self, ids):
        hidden = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.head(hidden)


class FailSafeTrainer:
    def __init__(self, model, dataset, output_dir):
        self.core = model
        self.model = DistributedDataParallel(model)
        self.loader = DataLoader(dataset, batch_size=1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.output_dir = Path(output_dir)
        self.global_step = 0

    def _inner_training_loop(self):
        for ids in self.loader:
            loss = nn.functional.cross_entropy(self.model(ids).flatten(0, 1), ids.flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.global_step += 1

    def _emergency_save(self):
        folder = self.output_dir / f"checkpoint-emergency-{dist.get_rank()}"
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.core.state_dict(), folder / "pytorch_model.bin")

    def train(self):
        try:
            self._inner_training_loop()
        except (IndexError, RuntimeError):
            traceback.print_exc(file=sys.stdout)
            dist.barrier()
            self._emergency_save()
        print(f"rank {dist.get_rank()}: {self.global_step} steps", flush=True)


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        FailSafeTrainer(Transformer(), Conversations(dist.get_rank()), name).train()
    dist.destroy_process_group()
