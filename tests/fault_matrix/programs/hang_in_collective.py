"""Rank 0 waits in a collective that rank 1 passes by; rank 1 waits in another, of another process group.

fault: hang in {case}
cases: all_reduce all_gather all_gather_object all_to_all barrier broadcast broadcast_object_list gather recv reduce
    reduce_scatter scatter
outcome: failed
rank: any
kind: hang
line: "{case}": lambda
waits: dist.all_reduce(torch.ones(2), group=elsewhere)
"""

import sys

import torch
import torch.distributed as dist

ONE, TWO = torch.ones(2), [torch.ones(2), torch.ones(2)]
COLLECTIVES = {
    "all_reduce": lambda: dist.all_reduce(ONE),
    "all_gather": lambda: dist.all_gather(TWO, ONE),
    "all_gather_object": lambda: dist.all_gather_object([None, None], "mine"),
    "all_to_all": lambda: dist.all_to_all(TWO, [ONE, ONE]),
    "barrier": lambda: dist.barrier(),
    "broadcast": lambda: dist.broadcast(ONE, src=1),
    "broadcast_object_list": lambda: dist.broadcast_object_list(["yours"], src=1),
    "gather": lambda: dist.gather(ONE, TWO),
    "recv": lambda: dist.recv(ONE, src=1),
    "reduce": lambda: dist.reduce(ONE, dst=0),
    "reduce_scatter": lambda: dist.reduce_scatter(ONE, TWO),
    "scatter": lambda: dist.scatter(ONE, src=1),
}


def main():
    dist.init_process_group("gloo")
    elsewhere = dist.new_group()
    dist.monitored_barrier()
    if dist.get_rank() == 0:
        COLLECTIVES[sys.argv[1]]()
    dist.all_reduce(torch.ones(2), group=elsewhere)


if __name__ == "__main__":
    main()
