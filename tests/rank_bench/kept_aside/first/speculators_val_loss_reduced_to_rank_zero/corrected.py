"""Reduces the validation loss to all ranks before they decide on a save with it.

source: https://github.com/vllm-project/speculators/pull/480
bug: RS405
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class DistributedCheckpointer:
    def __init__(self, path):
        self.path = path

    def save_checkpoint(self, model, epoch):
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, {"rank": dist.get_rank(), "epoch": epoch})
        if dist.get_rank() == 0:
            torch.save({"model": model.state_dict(), "parts": parts}, self.path)
        dist.barrier()


class Trainer:
    def __init__(self, model, train_data, val_data):
        self.model = DDP(model)
        self.opt = torch.optim.Adam(model.parameters(), lr=0.05)
        self.train_data, self.val_data = train_data, val_data
        path = os.path.join(tempfile.gettempdir(), "speculator.pt")
        self.checkpointer = DistributedCheckpointer(path)
        self.best_val_loss = float("inf")

    def val_epoch(self):
        total = torch.zeros(())
        with torch.no_grad():
            for x, y in self.val_data:
                total += torch.nn.functional.mse_loss(self.model.module(x), y)
        dist.all_reduce(total, op=dist.ReduceOp.SUM)
        return total.item() / (len(self.val_data) * dist.get_world_size())

    def run_training(self, epochs):
        for epoch in range(epochs):
            for x, y in self.train_data:
                self.opt.zero_grad()
                torch.nn.functional.mse_loss(self.model(x), y).backward()
                self.opt.step()
            val_loss = self.val_epoch()
            if val_loss < self.best_val_loss:
                self.best_val_loss = val_loss
                self.checkpointer.save_checkpoint(self.model.module, epoch)


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(dist.get_rank())
    train = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(4)]
    val = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(2)]
    Trainer(torch.nn.Linear(3, 1), train, val).run_training(12)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
