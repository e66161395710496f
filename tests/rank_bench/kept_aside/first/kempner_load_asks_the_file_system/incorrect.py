"""Each rank asks the file system for a state file and only then takes part in the broadcast.

source: https://github.com/KempnerInstitute/KempnerForge/issues/49
bug: RS401
ranks: 2
expect: RS401
line: dist.broadcast_object_list(state, src=0)
decidable: yes
shows: error Timed out waiting|Connection (closed|reset) by peer
"""

import os
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


class CheckpointManager:
    def __init__(self, base_dir):
        self.base_dir = Path(base_dir)

    def save(self, step, train_state):
        ckpt_dir = self.base_dir / f"step_{step}"
        if dist.get_rank() == 0:
            ckpt_dir.mkdir(parents=True, exist_ok=True)
            time.sleep(0.5)
            torch.save(train_state, ckpt_dir / "train_state.pt")

    def load(self, step):
        """The train state of a step on all ranks, or None where there is none."""
        train_state_path = self.base_dir / f"step_{step}" / "train_state.pt"
        state = [None]
        if train_state_path.exists():
            if dist.get_rank() == 0:
                state = [torch.load(train_state_path)]
            dist.broadcast_object_list(state, src=0)
        return state[0]


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    run_dir = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(run_dir, src=0)
    manager = CheckpointManager(run_dir[0])
    manager.save(100, {"step": 100, "tokens_seen": 4096})
    state = manager.load(100)
    print(dist.get_rank(), state)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
