"""The first process makes up the name of the output directory and tells it to the others.

source: https://github.com/huggingface/transformers/issues/28270
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
import secrets
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def get_last_checkpoint(folder):
    checkpoints = sorted(folder.glob("checkpoint-*.pt"))
    return checkpoints[-1] if checkpoints else None


class Trainer:
    def __init__(self, output_dir, save_steps=2):
        self.output_dir = output_dir
        self.save_steps = save_steps
        self.output_dir.mkdir(parents=True, exist_ok=True)
        self.model = nn.Linear(5, 1)
        self.state = torch.zeros(1)

    def _load_from_checkpoint(self, path):
        """The first process reads the file, the others get the weights from it."""
        if dist.get_rank() == 0:
            checkpoint = torch.load(path)
            self.model.load_state_dict(checkpoint["model"])
            self.state = checkpoint["step"]
        for tensor in [self.state, *self.model.state_dict().values()]:
            dist.broadcast(tensor, src=0)

    def train(self, batches, resume_from_checkpoint=None):
        if resume_from_checkpoint is not None:
            self._load_from_checkpoint(resume_from_checkpoint)
        ddp = DistributedDataParallel(self.model)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        for batch in batches[int(self.state) :]:
            ddp(batch).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            self.state += 1
            if self.state % self.save_steps == 0 and dist.get_rank() == 0:
                path = self.output_dir / f"checkpoint-{int(self.state)}.pt"
                torch.save({"model": self.model.state_dict(), "step": self.state}, path)
        dist.barrier()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    name = [f"run-{secrets.token_hex(4)}"]
    dist.broadcast_object_list(name, src=0)
    output_dir = Path(tempfile.gettempdir(), name[0])
    batches = [torch.randn(4, 5) for _ in range(6)]
    Trainer(output_dir).train(batches[:4])
    # the job was preempted and starts again
    Trainer(output_dir).train(batches, resume_from_checkpoint=get_last_checkpoint(output_dir))
    print(f"rank {dist.get_rank()}: done, {output_dir.name}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
