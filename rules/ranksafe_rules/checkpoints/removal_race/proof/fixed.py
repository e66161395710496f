"""Rank 0 removes the directory of an earlier run, and rank 1 waits for it.

runs-on: cpu-ranks
ranks: 2
expect: output rank 1 goes on
"""

import os
import shutil
import tempfile

import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder, src=0)
    directory = folder[0] + "/checkpoints"
    os.makedirs(directory, exist_ok=True)
    dist.barrier()
    if dist.get_rank() == 0 and os.path.exists(directory):
        shutil.rmtree(directory)
    dist.barrier()
    print(f"rank {dist.get_rank()} goes on: {not os.path.exists(directory)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
