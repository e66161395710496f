"""Half of the ranks train and half generate; all of them build the device mesh of the trainers, which only these use.

source: https://github.com/pytorch/pytorch/issues/190396
bug: RS412
ranks: 4
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

NUM_TRAINERS = 2
TIMEOUT = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))


def role_of(rank: int) -> str:
    return "trainer" if rank < NUM_TRAINERS else "generator"


def build_mesh(role: str) -> DeviceMesh | None:
    """The mesh of the trainers."""
    mesh = init_device_mesh("cpu", (NUM_TRAINERS,), mesh_dim_names=("dp",))
    return mesh if role == "trainer" else None


def train_step(mesh: DeviceMesh, weights: torch.Tensor) -> None:
    grad = torch.randn_like(weights)
    dist.all_reduce(grad, group=mesh.get_group("dp"))
    weights -= 0.1 * grad / mesh.size()


def main() -> None:
    dist.init_process_group("gloo", timeout=TIMEOUT)
    role = role_of(dist.get_rank())
    mesh = build_mesh(role)
    # The weights have a group of their own, so that they never mix with the rest of the traffic.
    weight_group = dist.new_group(timeout=TIMEOUT)
    weights = torch.zeros(16)
    for _ in range(3):
        if role == "trainer":
            train_step(mesh, weights)
        # New weights for the generators.
        dist.broadcast(weights, src=0, group=weight_group)
    print(f"{role}: {weights.norm():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
