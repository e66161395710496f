"""Trains until it is stopped."""

import os
import time
from pathlib import Path

import torch
from accelerate import Accelerator


def main() -> None:
    accelerator = Accelerator()
    model = accelerator.prepare(torch.nn.Linear(2, 1))
    Path(__file__).with_name(f"rank-{accelerator.process_index}.pid").write_text(str(os.getpid()))
    while True:
        model(torch.ones(1, 2, device=accelerator.device)).sum().backward()
        time.sleep(0.2)


if __name__ == "__main__":
    main()
