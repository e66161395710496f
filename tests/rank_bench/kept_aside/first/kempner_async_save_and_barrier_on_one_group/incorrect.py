"""Saves asynchronously in a thread and meets a barrier on the same group in the main thread.

source: https://github.com/KempnerInstitute/KempnerForge/issues/104
bug: RS414
ranks: 2
expect: RS414
line: dist.barrier()
decidable: yes
shows: hang
"""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class AsyncCheckpointer:
    def __init__(self):
        self._future = None

    def save(self, state, path):
        self.wait()
        self._future = dcp.async_save(state, checkpoint_id=path)

    def wait(self):
        if self._future is not None:
            self._future.result()
            self._future = None


class CheckpointManager:
    def __init__(self, base_dir):
        self.base_dir = base_dir
        self.checkpointer = AsyncCheckpointer()

    def save(self, model, step):
        path = os.path.join(self.base_dir, f"step_{step}")
        self.checkpointer.save({"model": model.state_dict()}, path)
        if dist.get_rank() == 0:
            with open(os.path.join(self.base_dir, "latest"), "w") as f:
                f.write(path)
        dist.barrier()


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    run_dir = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(run_dir, src=0)
    model = torch.nn.Linear(64, 64)
    manager = CheckpointManager(run_dir[0])
    for step in range(8):
        manager.save(model, step)
    manager.checkpointer.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
