"""Each rank clips its own shard to 1, and together the gradients are longer than that.

runs-on: cpu-ranks
ranks: 2
expect: output norm after clipping to 1: 1.41
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel


def norm_after_clipping() -> float:
    torch.manual_seed(0)
    model = FullyShardedDataParallel(nn.Linear(4, 4, bias=False), device_id=torch.device("cpu"))
    model(torch.arange(8.0).reshape(2, 4)).sum().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    squares = [(part.grad**2).sum() for part in model.parameters() if part.grad is not None]
    total = torch.stack(squares).sum()
    dist.all_reduce(total)
    return total.sqrt().item()


def main() -> None:
    dist.init_process_group("gloo")
    norm = norm_after_clipping()
    if dist.get_rank() == 0:
        print(f"norm after clipping to 1: {norm:.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
