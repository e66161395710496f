"""Makes the W&B logger on the main rank only and puts it into a dict on all ranks.

source: https://github.com/ultralytics/yolov5/issues/2562
bug: RS409
ranks: 2
expect: RS409
line: loggers = {"wandb": wandb_logger.wandb}
decidable: yes
shows: error UnboundLocalError
"""

import argparse
import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

logger = logging.getLogger(__name__)


class WandbLogger:
    def __init__(self, opt, name):
        self.wandb = None
        self.log_dict = {"name": name, "epochs": opt.epochs}

    def log(self, values):
        self.log_dict.update(values)


def train(opt, device):
    rank, weights = opt.global_rank, "yolov5s.pt"
    if rank in [-1, 0]:
        run_name = f"{weights}-{opt.epochs}"
        wandb_logger = WandbLogger(opt, run_name)
    loggers = {"wandb": wandb_logger.wandb}

    model = torch.nn.Linear(4, 2).to(device)
    if rank != -1:
        model = DDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(opt.epochs):
        loss = model(torch.randn(4, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank in [-1, 0]:
            wandb_logger.log({"epoch": epoch, "train/loss": loss.item()})
            logger.info("%s %s", loggers, loss.item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--local_rank", type=int, default=-1)
    opt = parser.parse_args()
    opt.global_rank = int(os.environ["RANK"]) if "RANK" in os.environ else -1
    if opt.global_rank != -1:
        timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        dist.init_process_group(backend="gloo", timeout=timeout)
    train(opt, torch.device("cpu"))
    if opt.global_rank != -1:
        dist.destroy_process_group()
