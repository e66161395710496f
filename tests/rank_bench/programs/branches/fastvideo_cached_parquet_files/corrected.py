"""Lists the files of a data set with a cache on disk that the first rank alone looks for and writes; all wait for it.

source: https://github.com/hao-ai-lab/FastVideo/pull/598
bug: RS401
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import json
import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def scan_parquet_files(path: str) -> list[tuple[str, int]]:
    """Name and number of rows of every file."""
    return [(os.path.join(path, f"chunk_{i:03d}.parquet"), 6 + i % 2) for i in range(8)]


def get_parquet_files_and_length(path: str) -> tuple[list[str], list[int]]:
    cache = os.path.join(path, "file_list.json")
    if dist.get_rank() == 0 and not os.path.exists(cache):
        with open(cache + ".part", "w") as f:
            json.dump(scan_parquet_files(path), f)
        os.replace(cache + ".part", cache)
    dist.barrier()
    with open(cache) as f:
        files = json.load(f)
    return [name for name, _ in files], [rows for _, rows in files]


def load_text_encoder(rank: int) -> torch.nn.Module:
    time.sleep(0.4 * rank)  # the ranks of a node read the same disk
    return torch.nn.Embedding(32, 8)


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    data_dir = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(data_dir, src=0)

    encoder = load_text_encoder(rank)
    files, lengths = get_parquet_files_and_length(data_dir[0])
    samples = sum(lengths[rank::world_size])
    total = torch.tensor(samples)
    dist.all_reduce(total)
    if rank == 0:
        print(f"{len(files)} files, {total.item()} samples, {encoder.embedding_dim} wide")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
