"""Each rank looks on the disk whether the first has already written the best checkpoint; those that saw it wait.

source: https://github.com/huggingface/optimum-habana/pull/2230
bug: RS401
ranks: 2
expect: RS401
line: dist.barrier()
decidable: yes
shows: hang
"""

import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class GaudiTrainer:
    def __init__(self, model, output_dir):
        self.model = model
        self.wrapped = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.output_dir = output_dir
        self.should_save = dist.get_rank() == 0
        self.best_metric, self.best_model_checkpoint = float("inf"), None

    def _save_checkpoint(self, step, metric):
        checkpoint = os.path.join(self.output_dir, f"checkpoint-{step}")
        if self.should_save:
            state = self.model.state_dict()
            time.sleep(0.5)  # as long as the weights of a large model take
            os.makedirs(checkpoint, exist_ok=True)
            torch.save(state, os.path.join(checkpoint, "model.bin"))
        if metric < self.best_metric:
            self.best_metric = metric
            if os.path.exists(checkpoint):
                self.best_model_checkpoint = checkpoint

    def evaluate(self, features):
        with torch.no_grad():
            loss = self.model(features).pow(2).mean()
        dist.all_reduce(loss)
        return loss.item() / dist.get_world_size()

    def train(self, steps):
        for step in range(steps):
            self.wrapped(torch.randn(8, 4)).pow(2).mean().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        self._save_checkpoint(steps, self.evaluate(torch.randn(16, 4)))
        if self.best_model_checkpoint is not None:
            # The checkpoint may still be on its way to the other ranks.
            dist.barrier()
            state = torch.load(os.path.join(self.best_model_checkpoint, "model.bin"))
            self.model.load_state_dict(state)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    folder = os.path.join(tempfile.gettempdir(), f"gaudi-{os.environ['MASTER_PORT']}")
    trainer = GaudiTrainer(nn.Linear(4, 1), folder)
    trainer.train(steps=4)
    print(f"best loss {trainer.best_metric:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
