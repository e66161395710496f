"""Decides about W&B before the block of local rank zero.

source: https://github.com/Red-Hat-AI-Innovation-Team/mini_trainer/pull/38
bug: RS409
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import argparse
import json
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


class wandb_wrapper:
    metrics = []

    @classmethod
    def init(cls, project, config):
        print("wandb:", project, config)

    @classmethod
    def log(cls, values):
        cls.metrics.append(values)


def log_rank_0(msg):
    if int(os.environ["RANK"]) == 0:
        print(msg)


def train(model, data, use_wandb):
    for step, x in enumerate(data):
        loss = model(x).pow(2).mean()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad = None
        if use_wandb and dist.get_rank() == 0:
            wandb_wrapper.log({"step": step, "loss": loss.item()})


def main(wandb_project):
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    local_rank = int(os.environ["LOCAL_RANK"])
    params = {"lr": 1e-4, "wandb_project": wandb_project}
    output_path = Path(tempfile.gettempdir())

    use_wandb = wandb_project is not None
    if local_rank == 0:
        if use_wandb:
            wandb_wrapper.init(project=wandb_project, config=params)
            log_rank_0(f"Initialized wandb project: {wandb_project}")
        (output_path / "training_params.json").write_text(json.dumps(params))
    dist.barrier()

    model = torch.nn.Linear(4, 1)
    train_data = [torch.randn(2, 4) for _ in range(3)]
    train(model, train_data, use_wandb=use_wandb)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--wandb-project", default="mini-trainer")
    main(parser.parse_args().wandb_project)
