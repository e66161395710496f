"""To start faster, the groups of a model-parallel layout are made with local synchronization on their ranks.

source: https://github.com/NVIDIA/Megatron-LM/pull/5214
bug: RS412
ranks: 4
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

TIMEOUT = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))


def create_group(ranks):
    """Groups of which this rank is no member cost time and are never used."""
    if dist.get_rank() in ranks:
        return dist.new_group(ranks, timeout=TIMEOUT, use_local_synchronization=True)
    return None


class ParallelState:
    def __init__(self, tensor_parallel, pipeline_parallel):
        world_size = dist.get_world_size()
        data_parallel = world_size // (tensor_parallel * pipeline_parallel)
        layout = torch.arange(world_size).view(pipeline_parallel, data_parallel, tensor_parallel)
        self.tensor_group = self.pipeline_group = self.embedding_group = None
        for ranks in layout.reshape(-1, tensor_parallel).tolist():
            self.tensor_group = create_group(ranks) or self.tensor_group
        for ranks in layout.permute(1, 2, 0).reshape(-1, pipeline_parallel).tolist():
            self.pipeline_group = create_group(ranks) or self.pipeline_group
            # the first and the last stage share the weights of the embedding
            ends = sorted({ranks[0], ranks[-1]})
            self.embedding_group = create_group(ends) or self.embedding_group


def main():
    dist.init_process_group("gloo", timeout=TIMEOUT)
    state = ParallelState(tensor_parallel=2, pipeline_parallel=2)
    grad = torch.full((3,), float(dist.get_rank()))
    if state.embedding_group is not None:
        dist.all_reduce(grad, group=state.embedding_group)
    dist.all_reduce(grad, group=state.pipeline_group)
    print(f"rank {dist.get_rank()}: {grad.tolist()}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
