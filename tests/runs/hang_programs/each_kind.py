"""Rank 0 waits in the call that the first argument names; rank 1 waits in a receive for what rank 0 never sends."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

x = torch.ones(4)
parts = [torch.ones(4), torch.ones(4)]
objects = [None, None]


def backward():
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    if dist.get_rank() == 1:
        dist.recv(x, src=0)
    model(torch.ones(2, 4)).sum().backward()


def transfer_in_a_batch():
    for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, x, 1)]):
        work.wait()


CALLS = {
    "all_reduce": lambda: dist.all_reduce(x),
    "all_reduce async": lambda: dist.all_reduce(x, async_op=True).wait(),
    "broadcast": lambda: dist.broadcast(x, src=1),
    "reduce": lambda: dist.reduce(x, dst=0),
    "all_gather": lambda: dist.all_gather(parts, x),
    "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(torch.ones(8), x),
    "all_gather_object": lambda: dist.all_gather_object(objects, "a"),
    "gather": lambda: dist.gather(x, parts, dst=0),
    "gather_object": lambda: dist.gather_object("a", objects, dst=0),
    "scatter": lambda: dist.scatter(x, src=1),
    "scatter_object_list": lambda: dist.scatter_object_list([None], None, src=1),
    "broadcast_object_list": lambda: dist.broadcast_object_list(objects, src=1),
    "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(torch.ones(2), x),
    "all_to_all_single": lambda: dist.all_to_all_single(torch.ones(4), x),
    "barrier": dist.barrier,
    "monitored_barrier": dist.monitored_barrier,
    "new_group": lambda: dist.new_group([0, 1]),
    "recv": lambda: dist.recv(x, src=1),
    "recv from anybody": lambda: dist.recv(x),
    "irecv": lambda: dist.irecv(x, src=1).wait(),
    "recv_object_list": lambda: dist.recv_object_list(objects, src=1),
    "batch_isend_irecv": transfer_in_a_batch,
    "backward": backward,
}

if __name__ == "__main__":
    dist.init_process_group("gloo")
    dist.all_reduce(x)
    call = CALLS[sys.argv[1]]
    if dist.get_rank() == 0 or sys.argv[1] == "backward":
        call()
    else:
        dist.recv(x, src=0)
