"""After the training the first rank alone saves a last checkpoint, although saving ends in a barrier.

source: https://github.com/alan-turing-institute/autocast/pull/386
bug: RS401
ranks: 2
expect: RS401
line: trainer.save_checkpoint(self.output_dir / "final.ckpt")
decidable: yes
shows: hang
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, module, max_epochs):
        self.module = module
        self.model = DistributedDataParallel(module)
        self.max_epochs = max_epochs

    @property
    def is_global_zero(self):
        return dist.get_rank() == 0

    def fit(self, batches):
        optimizer = torch.optim.AdamW(self.model.parameters())
        for _ in range(self.max_epochs):
            for batch in batches:
                loss = (self.model(batch) - batch).abs().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    def save_checkpoint(self, path):
        """Every rank has to call this: sharded strategies collect their weights here."""
        if self.is_global_zero:
            torch.save(self.module.state_dict(), path)
        dist.barrier()


class TrainingRun:
    def __init__(self, output_dir):
        self.output_dir = output_dir
        if dist.get_rank() == 0:
            output_dir.mkdir()

    def finalize_aliases(self, trainer):
        if trainer.is_global_zero:
            (self.output_dir / "last.ckpt").symlink_to("final.ckpt")
        dist.barrier()

    def run(self, batches):
        trainer = Trainer(nn.Linear(6, 6), max_epochs=2)
        trainer.fit(batches)
        if trainer.is_global_zero:
            print("Trainer.fit stopped: max_epochs reached", flush=True)
            trainer.save_checkpoint(self.output_dir / "final.ckpt")
        self.finalize_aliases(trainer)
        return (self.output_dir / "last.ckpt").exists()


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    torch.manual_seed(dist.get_rank())
    folder = Path(tempfile.gettempdir(), f"autocast-{os.environ['MASTER_PORT']}-{os.getppid()}")
    done = TrainingRun(folder).run([torch.randn(4, 6) for _ in range(3)])
    print(dist.get_rank(), "finished", done, flush=True)
    dist.destroy_process_group()
