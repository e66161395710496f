"""Trains a fully sharded GPT-2 and generates a sample on all ranks; rank 0 prints it.

source: https://github.com/facebookresearch/ParlAI/issues/3753
bug: RS402
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import GPT2Config, GPT2LMHeadModel


def load_model() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=64,
        n_positions=32,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    model = GPT2LMHeadModel(config)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.transformer.h:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def sample(model: GPT2LMHeadModel, rank: int) -> None:
    prompt = torch.tensor([[2, 3, 5, 7]])
    model.eval()
    tokens = model.generate(prompt, max_new_tokens=4, do_sample=False, synced_gpus=True)
    if rank == 0:
        print(tokens[0].tolist(), flush=True)
    model.train()


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    model = load_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(4):
        tokens = torch.randint(2, 64, (2, 16))
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 2 == 1:
            sample(model, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
