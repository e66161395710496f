"""Even ranks of a ring send in one group and receive in the other, odd ranks the other way round.

source: https://github.com/ByteDance-Seed/VeOmni/pull/1085
bug: RS416
ranks: 3
expect: RS416
line: receive = dist.irecv(received, src=self.prev, group=recv_group)
decidable: yes
shows: hang
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


class RingP2P:
    def __init__(self, timeout):
        self.ring_rank = dist.get_rank()
        ring_size = dist.get_world_size()
        self.next = (self.ring_rank + 1) % ring_size
        self.prev = (self.ring_rank + ring_size - 1) % ring_size
        self.group = dist.new_group(timeout=timeout)
        # a second communicator, so that sending and receiving overlap
        self.overlap_group = dist.new_group(timeout=timeout)

    def exchange(self, block):
        received = torch.empty_like(block)
        if self.ring_rank % 2 == 0:
            send_group, recv_group = self.group, self.overlap_group
        else:
            send_group, recv_group = self.overlap_group, self.group
        send = dist.isend(block, dst=self.next, group=send_group)
        receive = dist.irecv(received, src=self.prev, group=recv_group)
        send.wait()
        receive.wait()
        return received


def attention_with_context_parallel(query, key, value, ring):
    maximum = torch.full(query.shape[:1], -torch.inf)
    total, output = torch.zeros(query.shape[0]), torch.zeros_like(query)
    for _ in range(dist.get_world_size()):
        scores = query @ key.T
        new_maximum = torch.maximum(maximum, scores.amax(dim=1))
        weights = torch.exp(scores - new_maximum[:, None])
        decay = torch.exp(maximum - new_maximum)
        total = total * decay + weights.sum(dim=1)
        output = output * decay[:, None] + weights @ value
        maximum = new_maximum
        key, value = ring.exchange(torch.stack([key, value])).unbind()
    return output / total[:, None]


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(dist.get_rank())
    query, key, value = torch.randn(3, 5, 8)
    output = attention_with_context_parallel(query, key, value, RingP2P(timeout))
    print(f"rank {dist.get_rank()}: {output.mean().item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
