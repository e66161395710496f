"""A buffer that is filled anew while it is being sent, and one that is divided before it is summed."""

import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
wrong = sys.argv[1]
buffer = torch.full((1000,), 1.0)
for step in range(2):
    if rank == 0:
        work = dist.isend(buffer, dst=1)  # sent here
        if wrong == "send":
            buffer.fill_(step)
        work.wait()
        buffer.fill_(step)
    else:
        received = torch.empty(1000)
        work = dist.irecv(received, src=0)
        work.wait()
        received.add_(1)
gradient = torch.ones(10)
work = dist.all_reduce(gradient, async_op=True)  # summed here
if wrong == "reduce":
    gradient.div_(2)
work.wait()
gradient.div_(2)
parts = torch.zeros(4)
first = dist.all_reduce(parts[:2], async_op=True)
parts[2:] = 1
first.wait()
gathered = torch.zeros(20)
work = dist.all_gather_into_tensor(gathered, gradient, async_op=True)
work.wait()
dist.barrier()
dist.destroy_process_group()
