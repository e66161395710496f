"""Copies the part that stays on the rank.

source: https://github.com/pytorch/pytorch/issues/106164
bug: RS416
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


def all_to_all(in_tensors):
    """Send in_tensors[i] to rank i; what all ranks have sent here."""
    world_size = dist.get_world_size()
    rank = dist.get_rank()
    part2size = [None] * world_size
    sizes = [in_tensor.shape for in_tensor in in_tensors]
    dist.all_gather_object(part2size, sizes)
    op_list = []
    buffer = [None] * world_size
    for i in range(world_size):
        if i == rank:
            buffer[i] = in_tensors[i]
            continue
        op_list.append(dist.P2POp(dist.isend, in_tensors[i], i))
        buffer[i] = torch.empty(part2size[i][rank], dtype=in_tensors[i].dtype)
        op_list.append(dist.P2POp(dist.irecv, buffer[i], i))
    reqs = dist.batch_isend_irecv(op_list)
    for req in reqs:
        req.wait()
    return buffer


def partition_nodes(rank, world_size, nodes=24):
    """The nodes that this rank has sampled, by the rank that owns them."""
    generator = torch.Generator().manual_seed(rank)
    sampled = torch.randperm(nodes, generator=generator)[: nodes // 2]
    return [sampled[sampled % world_size == owner] for owner in range(world_size)]


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank, world_size = dist.get_rank(), dist.get_world_size()
    requests = all_to_all(partition_nodes(rank, world_size))
    features = torch.arange(24.0) * 10
    answers = all_to_all([features[nodes] for nodes in requests])
    print(f"rank {rank}: {sum(len(part) for part in answers)} features", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
