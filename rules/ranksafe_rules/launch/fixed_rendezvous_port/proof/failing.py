"""Another job on the machine has the port that stands in the code.

Rank 0 listens itself here, as it does where no torchrun has started the ranks.

runs-on: cpu-ranks
ranks: 2
expect: exception torch.distributed.DistNetworkError: EADDRINUSE
frame: dist.init_process_group("gloo", timeout=timedelta(seconds=20))
"""

import contextlib
import os
import socket
from datetime import timedelta

import torch.distributed as dist


def main() -> None:
    os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)
    rank = int(os.environ["RANK"])
    other_job = socket.socket()
    if rank == 0:
        with contextlib.suppress(OSError):  # It is taken already: that is as good.
            other_job = socket.create_server(("", 29511))
    os.environ["MASTER_PORT"] = "29511"
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    print(f"rank {rank} goes on")
    dist.barrier()
    dist.destroy_process_group()
    other_job.close()


if __name__ == "__main__":
    main()
