"""Both ranks find the directory of an earlier run; the one that is slower does not find it any more.

runs-on: cpu-ranks
ranks: 2
expect: exception FileNotFoundError: [Errno 2] No such file or directory
frame: shutil.rmtree(directory)
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
    if os.path.exists(directory):
        dist.barrier()
        shutil.rmtree(directory)
    print(f"rank {dist.get_rank()} goes on")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
