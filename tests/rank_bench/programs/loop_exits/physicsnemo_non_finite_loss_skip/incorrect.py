"""Skips the batch of a non-finite loss on the rank that has it, others go into backward.

source: https://github.com/Project-MONAI/monai-physio/pull/137
bug: RS404
ranks: 2
expect: RS404
line: continue
decidable: yes
shows: error Timed out waiting|Connection (closed|reset) by peer
"""

import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class PhysicsTrainer:
    def __init__(self, model, learning_rate=1e-3):
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.world_size = dist.get_world_size() if dist.is_initialized() else 1
        self.model = DistributedDataParallel(model) if self.world_size > 1 else model
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=learning_rate)
        self.log = logging.getLogger(f"trainer.{self.rank}")

    def _iter_batches(self, pred_inputs, targets):
        for i in range(self.rank, len(pred_inputs), self.world_size):
            yield pred_inputs[i], targets[i]

    def _all_ranks(self, flag):
        """Whether the flag holds on all ranks."""
        value = torch.tensor(float(flag))
        if self.world_size > 1:
            dist.all_reduce(value, op=dist.ReduceOp.MIN)
        return bool(value.item())

    def fit(self, pred_inputs, targets, epochs=2):
        for epoch in range(epochs):
            for x, y in self._iter_batches(pred_inputs, targets):
                self.optimizer.zero_grad()
                loss = torch.nn.functional.l1_loss(self.model(x), y)
                finite = bool(torch.isfinite(loss))
                if not finite:
                    self.log.warning("Epoch %d: non-finite loss; skipping this batch.", epoch + 1)
                    continue
                loss.backward()
                self.optimizer.step()


def main():
    if "WORLD_SIZE" in os.environ:
        timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    inputs, targets = torch.randn(8, 4, 3), torch.randn(8, 4, 1)
    targets[3, 0] = float("inf")
    trainer = PhysicsTrainer(torch.nn.Linear(3, 1))
    trainer.fit(inputs, targets)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
