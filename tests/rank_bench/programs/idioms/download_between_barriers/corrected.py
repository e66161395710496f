"""All ranks but the first wait, the first downloads and then lets them go: one barrier on each rank, at two places.

source: https://github.com/pytorch/ignite/pull/1924
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import TensorDataset


def download(path: Path) -> None:
    """Stands for a download of some gigabytes."""
    if not path.exists():
        torch.save(torch.arange(64.0).reshape(16, 4), path)


def get_train_dataset(path: Path, local_rank: int) -> TensorDataset:
    if local_rank > 0:
        # The first rank of the node downloads.
        dist.barrier()

    if local_rank == 0:
        download(path)
    dataset = TensorDataset(torch.load(path))

    if local_rank == 0:
        # Now the others find the file.
        dist.barrier()
    return dataset


def main() -> None:
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    local_rank = int(os.environ["LOCAL_RANK"])
    path = Path(tempfile.gettempdir()) / f"rank_bench_{os.environ['MASTER_PORT']}.pt"
    dataset = get_train_dataset(path, local_rank)
    total = dataset.tensors[0][local_rank :: dist.get_world_size()].sum()
    dist.all_reduce(total)
    if local_rank == 0:
        print(f"total {total.item()}", flush=True)
        path.unlink()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
