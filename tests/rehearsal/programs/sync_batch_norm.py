"""SyncBatchNorm over all ranks against BatchNorm over the whole batch: outputs, gradients and running statistics.

Leaves without destroying its process group, as many scripts do.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def parts_of(tensor: torch.Tensor, ranks: int) -> list[torch.Tensor]:
    """Uneven on purpose: the first rank has one sample more."""
    sizes = [tensor.size(0) // ranks + (1 if rank == 0 else 0) for rank in range(ranks)]
    return list(tensor.split(sizes))


def main() -> None:
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        torch.manual_seed(0)
        whole = torch.randn(4 * ranks + 1, 3, 5, dtype=dtype)
        weights = torch.randn(3, dtype=dtype)
        reference = nn.BatchNorm1d(3, dtype=dtype)
        with torch.no_grad():
            reference.weight.copy_(weights)
        expected_input = whole.clone().requires_grad_()
        expected = reference(expected_input)
        expected.pow(3).sum().backward()

        synced = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3, dtype=dtype)).cuda()
        with torch.no_grad():
            synced.weight.copy_(weights)
        replica = DistributedDataParallel(synced, device_ids=[local_rank])
        mine = parts_of(whole, ranks)[rank].cuda().requires_grad_()
        output = replica(mine)
        # DistributedDataParallel averages gradients over the ranks.
        (output.pow(3).sum() * ranks).backward()

        pairs = {
            "output": (output, parts_of(expected, ranks)[rank]),
            "input gradient": (mine.grad / ranks, parts_of(expected_input.grad, ranks)[rank]),
            "weight gradient": (synced.weight.grad, reference.weight.grad),
            "bias gradient": (synced.bias.grad, reference.bias.grad),
            "running mean": (synced.running_mean, reference.running_mean),
            "running variance": (synced.running_var, reference.running_var),
        }
        for name, (found, wanted) in pairs.items():
            difference = (found.detach().cpu() - wanted.detach()).abs().max().item()
            scale = max(1.0, wanted.abs().max().item())
            assert difference <= tolerance * scale, (name, dtype, difference)
    print(f"rank {rank}: equal", flush=True)


if __name__ == "__main__":
    main()
