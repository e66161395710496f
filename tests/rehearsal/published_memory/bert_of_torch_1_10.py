"""bert-large with 512 tokens as torch 1.10 trained it.

Attention was no single kernel, gradients were zeroed and not dropped, the optimizer went parameter by parameter, and softmax
kept its input for the backward pass beside its output (pytorch/pytorch#65242).
"""

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, BertForSequenceClassification

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--checkpointed", action="store_true")
parser.add_argument("--half", action="store_true")
given = parser.parse_args()


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(context, scores: Tensor) -> Tensor:
        kept = scores.float()
        shares = torch.softmax(kept, -1)
        context.save_for_backward(kept, shares)
        return shares

    @staticmethod
    def backward(context, gradient: Tensor) -> Tensor:
        kept, shares = context.saved_tensors
        return torch._softmax_backward_data(gradient, shares, -1, kept.dtype)


functional.softmax = lambda scores, dim: Softmax.apply(scores)
config = BertConfig(
    hidden_size=1024,
    num_hidden_layers=24,
    num_attention_heads=16,
    intermediate_size=4096,
    attn_implementation="eager",
)
model = BertForSequenceClassification(config).cuda().train()
if given.checkpointed:
    model.gradient_checkpointing_enable({"use_reentrant": True})
    model.enable_input_require_grads()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, foreach=False)
scaler = torch.amp.GradScaler("cuda", enabled=given.half)
for _ in range(3):
    for _ in range(given.accumulate):
        tokens = torch.randint(100, 30000, (given.batch, 512), device="cuda")
        labels = torch.randint(2, (given.batch,), device="cuda")
        with torch.autocast("cuda", torch.float16, enabled=given.half):
            loss = model(tokens, labels=labels).loss / given.accumulate
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=False)
