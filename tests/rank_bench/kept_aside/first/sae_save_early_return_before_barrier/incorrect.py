"""SaeTrainer.save returns early except on rank zero, which then meets the barrier alone.

source: https://github.com/EleutherAI/sparsify/pull/5
bug: RS401
ranks: 2
expect: RS401
line: dist.barrier()
decidable: yes
shows: hang
"""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Sae(nn.Module):
    def __init__(self, d_in, num_latents):
        super().__init__()
        self.encoder = nn.Linear(d_in, num_latents)
        self.decoder = nn.Linear(num_latents, d_in)

    def forward(self, x):
        return self.decoder(self.encoder(x).relu())


class SaeTrainer:
    def __init__(self, hooks, ddp, save_every=3):
        self.saes = {hook: Sae(8, 16) for hook in hooks}
        self.ddp = ddp
        self.save_every = save_every
        self.path = tempfile.gettempdir()

    def fit(self, steps):
        for i in range(1, steps + 1):
            for sae in self.saes.values():
                x = torch.randn(4, 8)
                loss = (sae(x) - x).pow(2).mean()
                loss.backward()
                for p in sae.parameters():
                    if self.ddp:
                        dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
                    p.data.sub_(p.grad, alpha=1e-3)
                    p.grad = None
            if i % self.save_every == 0:
                self.save()

    def save(self):
        """Save the SAEs to disk."""
        if self.ddp and dist.get_rank() != 0:
            return
        print("Saving checkpoint")
        for hook, sae in self.saes.items():
            torch.save(sae.state_dict(), os.path.join(self.path, f"{hook}.pt"))
        if self.ddp:
            dist.barrier()


def run():
    ddp = os.environ.get("LOCAL_RANK") is not None
    if ddp:
        timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
        dist.init_process_group("gloo", timeout=timeout)
    trainer = SaeTrainer(["layers.0", "layers.1"], ddp)
    trainer.fit(10)
    if ddp:
        dist.destroy_process_group()


if __name__ == "__main__":
    run()
