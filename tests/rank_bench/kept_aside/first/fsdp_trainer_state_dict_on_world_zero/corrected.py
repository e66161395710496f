"""A Trainer takes the state dict of its fully sharded model on all ranks and writes it on one.

source: https://github.com/huggingface/transformers/pull/10596
bug: RS402
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
import tempfile
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FullyShardedDDP
from torch.distributed.fsdp.wrap import ModuleWrapPolicy


@dataclass
class TrainingArguments:
    output_dir: str
    local_rank: int = -1


class Trainer:
    def __init__(self, model, args):
        self.args = args
        policy = ModuleWrapPolicy({nn.Linear})
        cpu = torch.device("cpu")
        self.model = FullyShardedDDP(model, auto_wrap_policy=policy, device_id=cpu)

    def is_world_process_zero(self):
        return self.args.local_rank == -1 or dist.get_rank() == 0

    def evaluate(self, batches):
        with torch.no_grad():
            losses = [self.model(x).pow(2).mean() for x in batches]
        return torch.stack(losses).mean().item()

    def save_model(self, output_dir):
        state_dict = self.model.state_dict()
        if self.is_world_process_zero():
            self._save(output_dir, state_dict=state_dict)
        if self.args.local_rank != -1:
            dist.barrier()

    def _save(self, output_dir, state_dict=None):
        os.makedirs(output_dir, exist_ok=True)
        state_dict = state_dict if state_dict is not None else self.model.state_dict()
        torch.save(state_dict, os.path.join(output_dir, "pytorch_model.bin"))


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    args = TrainingArguments(tempfile.gettempdir(), int(os.environ.get("LOCAL_RANK", -1)))
    trainer = Trainer(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)), args)
    print(trainer.evaluate([torch.randn(4, 8) for _ in range(2)]))
    trainer.save_model(os.path.join(args.output_dir, "final"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
