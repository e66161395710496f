"""Tensors that are read while other ranks still send what belongs into them, and reads beside or after that."""

import sys

import torch
import torch.distributed as dist
from torch.utils.flop_counter import FlopCounterMode

dist.init_process_group("gloo")
rank = dist.get_rank()
wrong = sys.argv[1]

total = torch.ones(10)
work = dist.all_reduce(total, async_op=True)  # summed here
if wrong == "sum":
    mean = total / 2
work.wait()
mean = total / 2

gathered = torch.zeros(20)
work = dist.all_gather_into_tensor(gathered, total, async_op=True)  # gathered here
if wrong == "part":
    print(gathered.view(2, 10)[1].mean().item())
work.wait()

weights = torch.nn.Linear(4, 4)
works = []
for parameter in weights.parameters():
    work = dist.broadcast(parameter.data, src=0, async_op=True)  # sent here
    works.append(work)
if wrong == "weights":
    weights(torch.ones(2, 4))
for work in works:
    work.wait()
weights(torch.ones(2, 4))

flat = torch.ones(8)
if wrong == "half":
    dist.all_reduce(flat[:4], async_op=True)  # halved here
    flat[:4] /= 2
dist.barrier()

if rank == 0:
    work = dist.isend(flat, dst=1)
    copy = flat.clone()
    work.wait()
else:
    received = torch.empty(8)
    work = dist.irecv(received, src=0)
    same_size = torch.zeros_like(received)
    other_part = received.view(2, 4)[0].shape
    work.wait()
    received.sum()
if rank == 0:
    dist.send(flat, dst=1)
else:
    dist.recv(received, src=0)
    received.add_(1)

buffer = torch.zeros(8)
work = dist.all_reduce(buffer[:4], async_op=True)
buffer[4:].sum()
while not work.is_completed():
    pass
buffer.sum()
work = dist.all_reduce(buffer, async_op=True)
work.get_future().wait()
buffer.sum()
lists = [torch.zeros(4) for _ in range(2)]
work = dist.all_gather(lists, torch.ones(4), async_op=True)
with FlopCounterMode(display=False):
    work.wait()
    torch.stack(lists).sum()
torch.stack(lists).sum()
assert torch._C._len_torch_dispatch_stack() <= 1
work = dist.all_reduce(buffer, async_op=True)
work.wait()
assert torch._C._len_torch_dispatch_stack() == 0
dist.barrier()
dist.destroy_process_group()
