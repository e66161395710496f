"""Builds a feature cache on the first rank while the rest wait, but the first rank never joins the barrier.

source: https://github.com/huggingface/transformers/issues/2537
bug: RS401
ranks: 2
expect: RS401
line: torch.distributed.barrier()  # the first process builds the cache
decidable: yes
shows: hang
"""

import argparse
import os
import tempfile
from datetime import timedelta

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def load_and_cache_examples(args: argparse.Namespace) -> TensorDataset:
    if args.local_rank not in [-1, 0]:
        torch.distributed.barrier()  # the first process builds the cache

    cached_features_file = os.path.join(args.data_dir, f"cached_train_{args.max_seq_length}.pt")
    if os.path.exists(cached_features_file):
        features, labels = torch.load(cached_features_file)
    else:
        generator = torch.Generator().manual_seed(0)
        features = torch.randn(64, args.max_seq_length, generator=generator)
        labels = (features.sum(dim=1) > 0).long()
        if args.local_rank in [-1, 0]:
            torch.save((features, labels), cached_features_file)
    return TensorDataset(features, labels)


def train(args: argparse.Namespace, train_dataset: TensorDataset, model: nn.Module) -> float:
    sampler = DistributedSampler(train_dataset)
    loader = DataLoader(train_dataset, sampler=sampler, batch_size=args.batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loss = torch.zeros(())
    for epoch in range(args.num_train_epochs):
        sampler.set_epoch(epoch)
        for features, labels in loader:
            loss = nn.functional.cross_entropy(model(features), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", -1)))
    parser.add_argument("--max_seq_length", type=int, default=16)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--num_train_epochs", type=int, default=2)
    args = parser.parse_args()
    args.data_dir = os.path.join(tempfile.gettempdir(), os.environ["MASTER_PORT"])
    os.makedirs(args.data_dir, exist_ok=True)

    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    torch.distributed.init_process_group(backend="gloo", timeout=timeout)
    train_dataset = load_and_cache_examples(args)
    model = DistributedDataParallel(nn.Linear(args.max_seq_length, 2))
    loss = train(args, train_dataset, model)
    if args.local_rank in [-1, 0]:
        print(f"loss {loss:.4f}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
