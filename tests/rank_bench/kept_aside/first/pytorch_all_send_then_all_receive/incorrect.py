"""Sends a tensor to every other rank and only then receives from every other rank.

source: https://github.com/pytorch/pytorch/pull/11275
bug: RS416
ranks: 3
expect: RS416
line: dist.send(tensor, dst)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


class TestSendRecv:
    def setUp(self):
        timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        dist.init_process_group("gloo", timeout=timeout)
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()

    def build_tensor(self, size, value):
        return torch.full((size, size), float(value))

    def test_send_recv(self):
        tensor = self.build_tensor(10, self.rank)
        for dst in range(self.world_size):
            if dst == self.rank:
                continue
            dist.send(tensor, dst)
        for src in range(self.world_size):
            if src == self.rank:
                continue
            output = self.build_tensor(10, -1)
            dist.recv(output, src)
            assert output.eq(src).all()
        print(f"rank {self.rank} received all")

    def tearDown(self):
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    case = TestSendRecv()
    case.setUp()
    case.test_send_recv()
    case.tearDown()
