"""Read settings on rank 0 and broadcast them in the same try; when the file cannot be read, rank 0 swallows the error and skips the broadcast of the others.

source: https://github.com/sgl-project/sglang/pull/34910
bug: RS410
ranks: 3
expect: RS410
line: except OSError as error:
decidable: yes
shows: hang
"""

import argparse
import json
import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

logger = logging.getLogger(__name__)
DEFAULTS = {"lr": 0.01, "width": 16, "steps": 4}


def load_settings(path, rank):
    objects = [None]
    try:
        if rank == 0:
            with open(path) as file:
                objects = [json.load(file)]
        dist.broadcast_object_list(objects, src=0)
    except OSError as error:
        logger.warning("no settings, using the defaults: %s", error)
    return {**DEFAULTS, **(objects[0] or {})}


def train(settings):
    model = DistributedDataParallel(nn.Linear(settings["width"], 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["lr"])
    for _ in range(settings["steps"]):
        optimizer.zero_grad()
        loss = model(torch.randn(8, settings["width"])).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings", default="no_such_folder/settings.json")
    args = parser.parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    args.rank = dist.get_rank()
    loss = train(load_settings(args.settings, args.rank))
    if args.rank == 0:
        print(f"loss {loss:.4f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
