"""The directory of a run."""

import os
import time

import torch.distributed as dist


def get_log_dir(root, experiment):
    """Create the directory of this run on rank 0 and return it on all ranks."""
    log_dir = None
    if dist.get_rank() == 0:
        log_dir = os.path.join(root, f"{experiment}_{time.time_ns()}")
        os.makedirs(log_dir)
        print("logging to", log_dir)
    names = [log_dir]
    dist.broadcast_object_list(names, src=0)
    return names[0]
