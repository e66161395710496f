"""A training loop for measurements: ``measured_training.py cuda|cpu small|large``. Prints one line of JSON per rank.

On ``cpu`` the ranks use gloo; the work is the same.
"""

import json
import os
import resource
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def model_of(size: str) -> nn.Module:
    width, layers = (64, 2) if size == "small" else (384, 6)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    return nn.Sequential(
        nn.Embedding(1000, width), nn.TransformerEncoder(layer, layers), nn.Linear(width, 1000)
    )


def main() -> None:
    kind, size = sys.argv[1:]
    rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank) if kind == "cuda" else torch.device("cpu")
    if kind == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if kind == "cuda" else "gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(
        model_of(size).to(device), device_ids=[rank] if kind == "cuda" else None
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(rank)
    seconds = []
    for _ in range(12):
        tokens = torch.randint(0, 1000, (8, 32), device=device)
        began = time.process_time()
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds.append(time.process_time() - began)
    result = {
        "parameters": sum(one.numel() for one in model.parameters()),
        "step_cpu_seconds": statistics.median(seconds[2:]),
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    dist.destroy_process_group()
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
