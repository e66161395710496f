"""Rank 0 tokenises first, under Accelerate's ``main_process_first``, in processes of its own; then both train."""

import multiprocessing
import sys
import time

import torch
from accelerate import Accelerator


def tokenise(end):
    while time.time() < end:
        sum(range(100_000))
    return 1


if __name__ == "__main__":
    accelerator = Accelerator()
    with accelerator.main_process_first():
        if accelerator.is_main_process:
            end = time.time() + float(sys.argv[1])
            with multiprocessing.get_context("fork").Pool(2) as pool:
                pool.map(tokenise, [end, end])
    model = accelerator.prepare(torch.nn.Linear(4, 1))
    accelerator.backward(model(torch.ones(2, 4)).sum())
    accelerator.wait_for_everyone()
    print("done", flush=True)
    accelerator.end_training()
