"""Gathers parameters and gradients on all ranks and logs their norms on rank 0.

source: https://github.com/Lightning-AI/pytorch-lightning/issues/17600
bug: RS402
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


class LanguageModel(nn.Module):
    def __init__(self, vocab_size=32, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.head = nn.Linear(dim, vocab_size)

    def forward(self, tokens):
        return self.head(self.mlp(self.embed(tokens)))


def grad_norm(module):
    return {
        f"grad_2.0_norm/{name}": p.grad.norm(2).item()
        for name, p in module.named_parameters()
        if p.grad is not None
    }


class LitModel:
    def __init__(self, log_every_n_steps=2):
        self.global_rank = dist.get_rank()
        self.global_step = 0
        self.log_every_n_steps = log_every_n_steps
        self.model = FSDP(LanguageModel(), device_id=torch.device("cpu"), use_orig_params=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def log_dict(self, values):
        print(f"step {self.global_step}: {len(values)} norms", flush=True)

    def training_step(self, batch):
        logits = self.model(batch[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    def on_before_optimizer_step(self, optimizer):
        # how large are the gradients of all parameters?
        if self.global_step % self.log_every_n_steps == 0:
            with FSDP.summon_full_params(self.model, with_grads=True):
                norms = grad_norm(self.model)
            if self.global_rank == 0:
                self.log_dict(norms)


def fit(lit, batches):
    optimizer = lit.configure_optimizers()
    for batch in batches:
        optimizer.zero_grad()
        lit.training_step(batch).backward()
        lit.on_before_optimizer_step(optimizer)
        optimizer.step()
        lit.global_step += 1


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    torch.manual_seed(0)
    lit = LitModel()
    generator = torch.Generator().manual_seed(dist.get_rank())
    fit(lit, [torch.randint(32, (2, 9), generator=generator) for _ in range(4)])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
