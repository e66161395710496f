"""Arguments are processed on every rank; the folder and the loggers are made on the first one and returned by all.

source: https://github.com/mozilla/TTS/issues/655
bug: RS409
ranks: 2
expect: RS409
line: return config, out_path, c_logger, tb_logger
decidable: yes
shows: error UnboundLocalError
"""

import argparse
import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ConsoleLogger:
    def print_epoch(self, epoch, loss):
        print(f" > EPOCH {epoch}: {loss:.4f}", flush=True)


class TensorboardLogger:
    def __init__(self, folder):
        self.folder = folder
        self.scalars = []

    def add_scalar(self, name, value, step):
        self.scalars.append((name, value, step))


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, default=int(os.environ["RANK"]))
    parser.add_argument("--epochs", type=int, default=2)
    return parser.parse_args()


def process_args(args):
    config = {"lr": 1e-3, "mel_bins": 8, "epochs": args.epochs}
    if args.rank == 0:
        out_path = tempfile.mkdtemp(prefix="tacotron-")
        c_logger = ConsoleLogger()
        tb_logger = TensorboardLogger(out_path)
        print(f" > output folder: {out_path}", flush=True)
    return config, out_path, c_logger, tb_logger


def main(args):
    config, _, c_logger, tb_logger = process_args(args)
    model = DDP(nn.Linear(config["mel_bins"], config["mel_bins"]))
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    for epoch in range(config["epochs"]):
        for mel in torch.randn(4, 5, config["mel_bins"]):
            loss = nn.functional.l1_loss(model(mel), mel)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if args.rank == 0:
            c_logger.print_epoch(epoch, loss.item())
            tb_logger.add_scalar("loss", loss.item(), epoch)


if __name__ == "__main__":
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    main(parse_arguments())
    dist.destroy_process_group()
