"""Gradient accumulation with ``no_sync``: two half batches give the gradient of the whole batch."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel


def gradient(replica: DistributedDataParallel, halves: list[torch.Tensor]) -> torch.Tensor:
    replica.zero_grad()
    with replica.no_sync():
        (replica(halves[0]).sum() / 2).backward()
    (replica(halves[1]).sum() / 2).backward()
    return replica.module.weight.grad.clone()


def main() -> None:
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    everything = torch.randn(ranks, 4, 8)
    halves = list(everything[rank].cuda().chunk(2))
    expected = everything.sum((0, 1)).cuda() / (2 * ranks)

    def replica() -> DistributedDataParallel:
        torch.manual_seed(1)
        return DistributedDataParallel(nn.Linear(8, 1, bias=False).cuda(), device_ids=[local_rank])

    plain = gradient(replica(), halves)
    assert torch.allclose(plain[0], expected, atol=1e-5), (plain, expected)
    compressed = replica()
    compressed.register_comm_hook(None, default_hooks.fp16_compress_hook)
    assert torch.allclose(gradient(compressed, halves)[0], expected, atol=1e-2)
    lossy = replica()
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    lossy.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for _ in range(4):
        assert torch.isfinite(gradient(lossy, halves)).all()
    dist.destroy_process_group()
    print(f"rank {rank}: equal", flush=True)


if __name__ == "__main__":
    main()
