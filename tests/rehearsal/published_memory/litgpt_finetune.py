"""LitGPT's models finetuned as its configurations of April 2024 say, each batch as long as their longest: 512 tokens."""

import argparse

import lightning
import torch
from litgpt import lora, model
from litgpt.utils import chunked_cross_entropy

# Micro-batch, how many are accumulated, options of LoRA.
HOW = {
    "tiny-llama-1.1b": (4, 8, None),
    "phi-2": (
        *(4, 2),
        {f"lora_{part}": True for part in ("query", "key", "value", "projection", "mlp", "head")}
        | {"lora_r": 8},
    ),
    "Llama-2-7b-hf": (2, 4, {"lora_query": True, "lora_value": True, "lora_r": 32}),
    "Mistral-7B-v0.1": (2, 4, {"lora_query": True, "lora_value": True, "lora_r": 32}),
}
LENGTH = 512
parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=HOW, required=True)
given = parser.parse_args()
batch, accumulate, adapters = HOW[given.model]

fabric = lightning.Fabric(devices=1, precision="bf16-true")
fabric.launch()
if adapters is None:
    config = model.Config.from_name(given.model)
    with fabric.init_module():
        trained = model.GPT(config)
else:
    config = lora.Config.from_name(given.model, lora_alpha=16, lora_dropout=0.05, **adapters)
    with fabric.init_module():
        trained = lora.GPT(config)
    lora.mark_only_lora_as_trainable(trained)
trained = fabric.setup_module(trained)
parameters = [parameter for parameter in trained.parameters() if parameter.requires_grad]
optimizer = torch.optim.AdamW(parameters, lr=2e-4, weight_decay=0.0, betas=(0.9, 0.95))
optimizer = fabric.setup_optimizers(optimizer)
trained.max_seq_length = LENGTH
for number in range(1, 3 * accumulate + 1):
    tokens, targets = torch.randint(config.vocab_size, (2, batch, LENGTH), device=fabric.device)
    if adapters is None:
        logits = trained(tokens)
        loss = chunked_cross_entropy(logits[..., :-1, :], targets[..., 1:])
    else:
        logits = trained(tokens, lm_head_chunk_size=128)
        logits[-1] = logits[-1][..., :-1, :]
        loss = chunked_cross_entropy(logits, targets[..., 1:])
    fabric.backward(loss / accumulate)
    if number % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
    print(loss.item())
