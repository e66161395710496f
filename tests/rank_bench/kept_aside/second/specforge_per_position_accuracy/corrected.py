"""Evaluates a draft model; a rank whose shard of the evaluation data is empty reduces zeros.

source: https://github.com/sgl-project/SpecForge/pull/637
bug: RS401
ranks: 3
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

TTT_LENGTH = 4


class DraftModel(nn.Module):
    def __init__(self, vocab: int = 20, dim: int = 12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.heads = nn.ModuleList(nn.Linear(dim, vocab) for _ in range(TTT_LENGTH))

    def forward(self, tokens):
        hidden = self.embed(tokens)
        return torch.stack([head(hidden).argmax(-1) for head in self.heads])


class Evaluator:
    """Accuracy of each speculated position over the whole evaluation set."""

    def __init__(self, model: DraftModel, dataset: list[torch.Tensor]):
        self.model = model
        self.shard = dataset[dist.get_rank() :: dist.get_world_size()]

    @torch.no_grad()
    def evaluate(self) -> dict[str, float]:
        per_pos_correct = torch.zeros(TTT_LENGTH)
        total_tokens = 0
        for tokens in self.shard:
            predicted = self.model(tokens)
            correct = (predicted == tokens).float().sum(dim=1)
            per_pos_correct += correct
            total_tokens += tokens.numel()

        totals = torch.tensor([float(total_tokens)], dtype=torch.float64)
        dist.all_reduce(totals, op=dist.ReduceOp.SUM)
        metrics = {"tokens": totals.item()}
        dist.all_reduce(per_pos_correct)
        for position, value in enumerate(per_pos_correct.tolist()):
            metrics[f"acc_{position}"] = value / totals.item()
        return metrics


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    torch.manual_seed(0)
    model = DraftModel()
    eval_set = [torch.randint(0, 20, (10,)) for _ in range(2)]
    metrics = Evaluator(model, eval_set).evaluate()
    dist.barrier()
    if dist.get_rank() == 0:
        print(metrics)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
