"""A trainer whose main rank runs the wrapped model on a fixed batch whenever it logs.

source: https://github.com/pytorch/pytorch/issues/20611
bug: RS403
ranks: 3
expect: RS403
line: outputs = self.model(self.fixed_batch)
decidable: yes
shows: hang
"""

import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@dataclass
class TrainConfig:
    steps: int = 6
    log_interval: int = 2
    lr: float = 1e-2


class Trainer:
    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.rank = dist.get_rank()
        self.is_main = self.rank == 0
        net = nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 12))
        self.model = DistributedDataParallel(net)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.lr)
        self.fixed_batch = torch.linspace(-1, 1, 48).view(4, 12)

    def train_step(self, batch: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(self.model(batch), batch)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def log(self, step: int, loss: torch.Tensor) -> None:
        if self.is_main:
            self.model.eval()
            outputs = self.model(self.fixed_batch)
            self.model.train()
            error = (outputs - self.fixed_batch).abs().mean()
            print(f"step {step}: loss {loss.item():.4f}, fixed {error.item():.4f}", flush=True)

    def fit(self) -> None:
        for step in range(1, self.config.steps + 1):
            loss = self.train_step(torch.randn(16, 12))
            if step % self.config.log_interval == 0:
                self.log(step, loss)
                dist.barrier()


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(int(os.environ["RANK"]))
    Trainer(TrainConfig()).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
