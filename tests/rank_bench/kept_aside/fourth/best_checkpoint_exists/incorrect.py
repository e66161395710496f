"""Notes the best checkpoint where its folder exists already, which it does for the process that has just written it; all load it in the end.

source: https://github.com/huggingface/transformers/pull/37025
bug: RS409
ranks: 2
expect: RS409
line: path = os.path.join(self.state.best_model_checkpoint, "model.pt")
decidable: no: whether the folder exists when a process looks for it depends on which process is faster
shows: error TypeError.*NoneType
"""

import os
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PREFIX_CHECKPOINT_DIR = "checkpoint"


@dataclass
class TrainerState:
    global_step: int = 0
    best_metric: float | None = None
    best_global_step: int | None = None
    best_model_checkpoint: str | None = None


class Trainer:
    def __init__(self, model, output_dir, load_best_model_at_end=True):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.output_dir = output_dir
        self.load_best_model_at_end = load_best_model_at_end
        self.should_save = dist.get_rank() == 0
        self.state = TrainerState()

    def save_model(self, folder):
        if self.should_save:
            time.sleep(0.2)  # the weights of a real model take longer
            os.makedirs(folder, exist_ok=True)
            torch.save(self.model.module.state_dict(), os.path.join(folder, "model.pt"))

    def _determine_best_metric(self, eval_loss):
        dist.all_reduce(eval_loss)
        if self.state.best_metric is None or eval_loss.item() < self.state.best_metric:
            self.state.best_metric = eval_loss.item()
            self.state.best_global_step = self.state.global_step

    def _save_checkpoint(self):
        name = f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        self.save_model(os.path.join(self.output_dir, name))
        if self.state.best_global_step:
            best = f"{PREFIX_CHECKPOINT_DIR}-{self.state.best_global_step}"
            best_checkpoint_dir = os.path.join(self.output_dir, best)
            if os.path.exists(best_checkpoint_dir):
                self.state.best_model_checkpoint = best_checkpoint_dir

    def _load_best_model(self):
        path = os.path.join(self.state.best_model_checkpoint, "model.pt")
        self.model.module.load_state_dict(torch.load(path))

    def train(self, batches, eval_batch):
        for x, y in batches:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
            self.state.global_step += 1
        with torch.no_grad():
            x, y = eval_batch
            self._determine_best_metric(nn.functional.mse_loss(self.model.module(x), y))
        self._save_checkpoint()
        if self.load_best_model_at_end:
            self._load_best_model()


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    generator = torch.Generator().manual_seed(dist.get_rank())
    data = [(x, x.sum(1, keepdim=True)) for x in torch.randn(5, 4, 3, generator=generator)]
    folder = os.path.join(tempfile.gettempdir(), f"out_{os.environ['MASTER_PORT']}")
    Trainer(nn.Linear(3, 1), folder).train(data[:-1], data[-1])
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
