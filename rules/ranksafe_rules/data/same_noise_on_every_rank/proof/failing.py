"""Both ranks train with the same noise.

runs-on: cpu-ranks
ranks: 2
expect: output different noise on 2 ranks in 3 steps: 3
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
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(8, 8).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sums = []
    for _ in range(3):
        images = torch.ones(4, 8, device=device) * dist.get_rank()
        noise = torch.randn_like(images)
        loss = (model(images + noise) - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums.append(noise.sum())
    of_all = [torch.zeros(3, device=device) for _ in range(dist.get_world_size())]
    dist.all_gather(of_all, torch.stack(sums))
    if dist.get_rank() == 0:
        different = len(torch.cat(of_all).unique())
        print(f"different noise on 2 ranks in 3 steps: {different}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
