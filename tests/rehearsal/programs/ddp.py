"""DistributedDataParallel as in PyTorch's tutorial: set_device, one replica per rank, a distributed sampler."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main() -> None:
    torch.manual_seed(0)
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler, pin_memory=True)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)).to(local_rank)
    replica = DistributedDataParallel(model, device_ids=[local_rank])
    optimizer = torch.optim.AdamW(replica.parameters(), lr=1e-2)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            inputs, targets = inputs.cuda(non_blocking=True), targets.cuda(non_blocking=True)
            loss = nn.functional.mse_loss(replica(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    total = loss.detach()
    dist.all_reduce(total, op=dist.ReduceOp.AVG)
    if dist.get_rank() == 0:
        print(f"loss {total.item():.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
