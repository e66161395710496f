"""Rank 1 takes more memory than its control group may have, and the kernel kills it.

Where no memory control group can be made (no root, no delegation), the rank kills itself with SIGKILL, as the kernel
would; it says which on its standard output, and the matrix counts both.

fault: OOM-kill
outcome: failed
rank: 1
kind: killed
line: kept += [bytearray(b"x") * (8 << 20), time.sleep(0.1)]
"""

import os
import signal
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

LIMIT = 192 << 20
PLACES = [("memory", "memory.limit_in_bytes"), ("", "memory.max")]


def limit_memory():
    """Whether the kernel will kill this process once it takes that much more memory."""
    for hierarchy, limit in PLACES:
        group = Path("/sys/fs/cgroup", hierarchy, f"ranksafe-fault-matrix-{os.getpid()}")
        try:
            group.mkdir()
            (group / limit).write_text(str(LIMIT))
            (group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            if group.exists():
                group.rmdir()
            continue
        return True
    return False


def fill(kept):
    while True:
        kept += [bytearray(b"x") * (8 << 20), time.sleep(0.1)]


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        limited = limit_memory()
        print("memory control group" if limited else "simulated with SIGKILL", flush=True)
        if not limited:
            threading.Timer(4.0, os.kill, (os.getpid(), signal.SIGKILL)).start()
        fill([])
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
