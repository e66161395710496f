"""Pads the entropies of all tokens that are no padding to one length on all ranks before they are gathered.

source: https://github.com/huggingface/trl/issues/3933
bug: RS407
ranks: 2
expect: clean
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn

VOCABULARY, PAD = 16, 0


def sample_completions(generator, batch_size=4, max_length=12):
    """Sampled completions, which end somewhere and are padded from there."""
    completions = torch.randint(1, VOCABULARY, (batch_size, max_length), generator=generator)
    lengths = torch.randint(3, max_length + 1, (batch_size, 1), generator=generator)
    mask = (torch.arange(max_length) < lengths).int()
    return completions * mask, mask


def get_high_entropy_mask(accelerator, entropies, mask, threshold):
    """True for tokens above the quantile of the entropies on all ranks."""
    non_pad_entropies = entropies[mask.bool()].float()
    padded = accelerator.pad_across_processes(non_pad_entropies, dim=0, pad_index=-1.0)
    all_entropies = accelerator.gather(padded)
    all_entropies = all_entropies[all_entropies >= 0]
    entropy_threshold = torch.quantile(all_entropies, threshold)
    return (entropies >= entropy_threshold) & mask.bool()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(VOCABULARY, 8, padding_idx=PAD), nn.Linear(8, VOCABULARY))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    generator = torch.Generator().manual_seed(42 + accelerator.process_index)
    for step in range(3):
        completion_ids, completion_mask = sample_completions(generator)
        advantages = torch.randn(4, 1, generator=generator)
        logps = model(completion_ids).log_softmax(-1)
        entropies = -(logps.detach().exp() * logps.detach()).sum(-1)
        entropy_mask = get_high_entropy_mask(accelerator, entropies, completion_mask, 0.8)
        token_logps = logps.gather(-1, completion_ids.unsqueeze(-1)).squeeze(-1)
        loss = -(token_logps * advantages * entropy_mask).sum() / entropy_mask.sum().clamp(min=1)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        accelerator.print(f"step {step}: {entropy_mask.sum()} tokens, loss {loss.item():.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
