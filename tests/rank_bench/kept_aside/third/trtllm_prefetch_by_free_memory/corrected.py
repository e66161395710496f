"""Ranks that see enough free memory prefetch the weights, and all wait for each other.

source: https://github.com/NVIDIA/TensorRT-LLM/pull/13556
bug: RS401
ranks: 4
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

# Free host memory in GB as every process of a run found it when it looked.
FREE_MEMORY_OF_A_RUN = [846.33, 1657.35, 881.24, 1389.18]


class WeightLoader:
    def __init__(self, files):
        self.files = files
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.cache = {}

    def available_host_memory(self):
        return FREE_MEMORY_OF_A_RUN[self.local_rank]

    def prefetch_files(self):
        """Every local rank reads its part of the files, so that they are in the page cache."""
        for name, size in list(self.files.items())[self.local_rank :: dist.get_world_size()]:
            self.cache[name] = torch.zeros(size // 10)

    def load_weights(self):
        prefetch_size = sum(self.files.values())
        enable_prefetch = prefetch_size < self.available_host_memory() * 0.9
        if enable_prefetch:
            print(f"rank {self.local_rank}: prefetching {prefetch_size} GB", flush=True)
            self.prefetch_files()
        # the others must have read their part before the files are opened
        dist.barrier()
        return {
            name: self.cache.get(name, torch.zeros(size // 10)) for name, size in self.files.items()
        }


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    loader = WeightLoader({f"model-{i:05d}.safetensors": 115 for i in range(7)})
    weights = loader.load_weights()
    checksum = torch.stack([weight.sum() + 1 for weight in weights.values()]).sum()
    dist.all_reduce(checksum, op=dist.ReduceOp.MIN)
    print(f"rank {dist.get_rank()}: loaded, checksum {checksum.item():.0f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
