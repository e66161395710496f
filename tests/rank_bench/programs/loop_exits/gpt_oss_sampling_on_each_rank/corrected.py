"""Samples the next token on rank zero and broadcasts it, so that all ranks stop together.

source: https://github.com/openai/gpt-oss/pull/285
bug: RS404
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist


class ShardedHead(torch.nn.Module):
    """The unembedding, its hidden dimension split over the ranks."""

    def __init__(self, vocab, hidden, rank, world_size):
        super().__init__()
        generator = torch.Generator().manual_seed(rank)
        self.embed = torch.randn(vocab, hidden // world_size, generator=generator)
        self.weight = 0.02 * torch.randn(hidden // world_size, vocab, generator=generator)

    def forward(self, token):
        logits = self.embed[token] @ self.weight
        dist.all_reduce(logits)
        return logits


class TokenGenerator:
    def __init__(self, vocab=50):
        self.rank = dist.get_rank()
        self.model = ShardedHead(vocab, 16, self.rank, dist.get_world_size())

    @torch.inference_mode()
    def generate(self, prompt_tokens, stop_tokens, temperature=1.0, max_tokens=400):
        tokens = list(prompt_tokens)
        while len(tokens) - len(prompt_tokens) < max_tokens:
            logits = self.model(tokens[-1])
            if temperature == 0.0:
                predicted_token = torch.argmax(logits, dim=-1, keepdim=True)
            else:
                probs = torch.softmax(logits / temperature, dim=-1)
                predicted_token = torch.multinomial(probs, num_samples=1)
            dist.broadcast(predicted_token, src=0)
            tokens.append(int(predicted_token))
            yield tokens[-1]
            if tokens[-1] in stop_tokens:
                break


def main(args):
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.seed()
    generator = TokenGenerator()
    out = list(generator.generate([1, 2, 3], stop_tokens={0}, temperature=args.temperature))
    print(f"rank {dist.get_rank()}: {len(out)} tokens")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Text generation")
    parser.add_argument("-t", "--temperature", type=float, default=1.0)
    main(parser.parse_args())
