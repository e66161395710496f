"""Llama 3.1 8B of transformers in bfloat16 on one GPU, checkpointed: all of it trained, or adapters (``--rank``)."""

import argparse

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--length", type=int, required=True)
parser.add_argument("--rank", type=int, default=0)
given = parser.parse_args()


def made() -> tuple[nn.Module, torch.optim.Optimizer]:
    config = LlamaConfig(
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=128256,
        dtype=torch.bfloat16,
    )
    with torch.device("cuda:0"):
        model = LlamaForCausalLM._from_config(config)
    model.gradient_checkpointing_enable()
    if given.rank:
        from peft import LoraConfig, get_peft_model

        model.enable_input_require_grads()
        projections = ["q_proj", "k_proj", "v_proj", "o_proj"]
        model = get_peft_model(model, LoraConfig(r=given.rank, target_modules=projections))
    trained = [each for each in model.parameters() if each.requires_grad]
    return model.train(), torch.optim.AdamW(trained, lr=5e-5, fused=True)


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    tokens = torch.randint(32000, (given.batch, given.length), device="cuda")
    model(input_ids=tokens, labels=tokens, use_cache=False).loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


if __name__ == "__main__":
    training = made()
    for _ in range(3):
        step(*training)
