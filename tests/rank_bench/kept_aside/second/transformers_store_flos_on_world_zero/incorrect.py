"""A trainer's `_save`, which only the world's first process calls, adds up the operations of all processes.

source: https://github.com/huggingface/transformers/pull/7365
bug: RS401
ranks: 2
expect: RS401
line: self._save(output_dir)
decidable: yes
shows: error Received data size doesn't match expected size
"""

import json
import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, model, max_steps, save_steps, output_dir):
        self.model = model
        self.model_wrapped = DistributedDataParallel(model)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.max_steps, self.save_steps, self.output_dir = max_steps, save_steps, output_dir
        self.state = {"global_step": 0, "total_flos": 0.0}
        self.current_flos = 0.0

    def is_world_process_zero(self):
        return dist.get_rank() == 0

    def floating_point_ops(self, inputs):
        return 6.0 * inputs.numel() * sum(p.numel() for p in self.model.parameters())

    def store_flos(self):
        flos = torch.tensor(self.current_flos, dtype=torch.float64)
        dist.all_reduce(flos)
        self.state["total_flos"] += flos.item()
        self.current_flos = 0.0

    def save_model(self, output_dir):
        if self.is_world_process_zero():
            self._save(output_dir)

    def _save(self, output_dir):
        os.makedirs(output_dir, exist_ok=True)
        self.store_flos()
        torch.save(self.model.state_dict(), os.path.join(output_dir, "pytorch_model.bin"))
        with open(os.path.join(output_dir, "trainer_state.json"), "w") as file:
            json.dump(self.state, file)

    def train(self):
        while self.state["global_step"] < self.max_steps:
            inputs = torch.randn(4, 16)
            self.model_wrapped(inputs).pow(2).mean().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.current_flos += self.floating_point_ops(inputs)
            self.state["global_step"] += 1
            if self.state["global_step"] % self.save_steps == 0:
                self.save_model(os.path.join(self.output_dir, "checkpoint"))


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    trainer = Trainer(nn.Linear(16, 4), max_steps=6, save_steps=3, output_dir=tempfile.mkdtemp())
    trainer.train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
