"""A hundred steps pass; the validation after them hangs."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def validate(model: torch.nn.Module) -> None:
    if dist.get_rank() == 0:
        model.eval()
        dist.barrier()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(120):
        model(torch.ones(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    validate(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
