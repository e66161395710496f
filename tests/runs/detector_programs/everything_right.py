"""The corrected form of every other program, one after the other in the same processes and process group."""

import os
import runpy
import sys
from pathlib import Path

import torch.distributed as dist

folder = sys.argv[1]
here = Path(__file__).parent
os.makedirs(folder, exist_ok=True)
dist.init_process_group("gloo")
destroy = dist.destroy_process_group
dist.init_process_group = dist.destroy_process_group = lambda *_, **__: None
for name in (
    "diverged_weights.py",
    "same_samples.py",
    "diverged_buffers.py",
    "stale_optimizer.py",
    "scaled_gradients.py",
    "collective_order.py",
    "written_files.py",
    "random_choices.py",
    "idle_rank.py",
    "changed_in_flight.py",
    "read_in_flight.py",
):
    sys.argv[1:] = ["right", folder]
    runpy.run_path(str(here / name), run_name="__main__")
sys.argv[1:] = [folder]
for name in ("plain_loops.py", "joined.py"):
    runpy.run_path(str(here / "correct" / name), run_name="__main__")
destroy()
print("all right")
