"""Each tensor-parallel group makes a CPU group of its own ranks only.

source: https://github.com/huggingface/transformers/pull/48302
bug: RS412
ranks: 4
expect: RS412
line: self.cpu_group = dist.new_group(ranks, backend="gloo", timeout=timeout)
decidable: yes
shows: hang sometimes
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


class DistributedHelper:
    """Passes the requests of a replica from its first rank to those that share its weights."""

    def __init__(self, mesh, timeout):
        tp_group = mesh.get_group()
        ranks = dist.get_process_group_ranks(tp_group)
        self.tp_rank, self.source = dist.get_rank(tp_group), ranks[0]
        self.cpu_group = dist.new_group(ranks, backend="gloo", timeout=timeout)

    def broadcast_requests(self, requests):
        requests = [requests if self.tp_rank == 0 else None]
        dist.broadcast_object_list(requests, src=self.source, group=self.cpu_group)
        return requests[0]


class ContinuousBatchingManager:
    def __init__(self, mesh, timeout, width=8):
        self.helper = DistributedHelper(mesh, timeout)
        self.group = mesh.get_group()
        torch.manual_seed(self.helper.tp_rank)
        self.weight = torch.randn(width, width) / width**0.5

    @torch.no_grad()
    def step(self, requests):
        requests = self.helper.broadcast_requests(requests)
        hidden = torch.tensor(requests, dtype=torch.float32) @ self.weight
        dist.all_reduce(hidden, group=self.group)
        return hidden.argmax(1).tolist()


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    manager = ContinuousBatchingManager(mesh["tp"], timeout)
    replica = mesh["dp"].get_local_rank()
    for step in range(3):
        requests = [[float(replica + step + i + j) for j in range(8)] for i in range(2)]
        tokens = manager.step(requests)
        if manager.helper.tp_rank == 0:
            print(f"replica {replica}, step {step}: {tokens}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
