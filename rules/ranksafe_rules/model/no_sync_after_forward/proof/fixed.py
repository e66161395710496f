"""The flag is set before the forward: the gradients of both micro-steps are reduced with the last one.

runs-on: cpu-ranks
ranks: 2
expect: output the weights of the ranks are the same: True
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
        torch.cuda.set_device(device)
    model = DistributedDataParallel(nn.Linear(4, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(dist.get_rank())
    for _ in range(2):
        for micro_step in range(2):
            model.require_backward_grad_sync = micro_step == 1
            loss = model(torch.randn(8, 4, device=device)).square().mean() / 2
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    weights = [torch.zeros(1, 4, device=device) for _ in range(dist.get_world_size())]
    dist.all_gather(weights, model.module.weight.detach())
    if dist.get_rank() == 0:
        print("the weights of the ranks are the same:", torch.equal(weights[0], weights[1]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
