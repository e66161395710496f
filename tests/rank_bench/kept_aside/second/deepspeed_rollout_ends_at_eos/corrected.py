"""Generates with a sharded model until the sequences of all ranks have ended.

source: https://github.com/deepspeedai/DeepSpeed/issues/8262
bug: RS404
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

VOCABULARY, EOS = 12, 0


class Student(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.block = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.block(self.embedding(tokens))[0])


@torch.no_grad()
def generate(model, tokens, max_new_tokens, generator):
    finished = torch.zeros(tokens.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        probabilities = model(tokens)[:, -1].softmax(-1)
        token = torch.multinomial(probabilities, 1, generator=generator).squeeze(1)
        token = token.masked_fill(finished, EOS)
        tokens = torch.cat([tokens, token.unsqueeze(1)], dim=1)
        finished |= token == EOS
        running = (~finished).sum()
        dist.all_reduce(running)
        if running.item() == 0:
            break
    return tokens


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    student = Student()
    for module in (student.block, student.head, student):
        fully_shard(module, mesh=mesh)
    teacher = Student()
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(rank)
    for step in range(3):
        prompts = torch.randint(1, VOCABULARY, (2, 4), generator=generator)
        rollout = generate(student, prompts, 24, generator)
        with torch.no_grad():
            target = teacher(rollout).softmax(-1)
        loss = nn.functional.cross_entropy(student(rollout).flatten(0, 1), target.flatten(0, 1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}, rank {rank}: {rollout.shape[1] - 4} new tokens", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
