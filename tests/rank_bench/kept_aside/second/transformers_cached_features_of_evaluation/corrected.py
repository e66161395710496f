"""The first process loads features while the others wait, but only in training; evaluation is on one process.

source: https://github.com/huggingface/transformers/pull/1081
bug: RS401
ranks: 2
expect: clean
shows: fine
"""

import argparse
import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def load_and_cache_examples(args, evaluate=False):
    if args.local_rank not in [-1, 0] and not evaluate:
        # Only the first process makes the features, the others will use the cache.
        dist.barrier()
    name = f"cached_{'dev' if evaluate else 'train'}_{os.environ['MASTER_PORT']}"
    cached_features_file = os.path.join(args.data_dir, name)
    if os.path.exists(cached_features_file):
        features, labels = torch.load(cached_features_file)
    else:
        features, labels = torch.randn(32, 8), torch.randint(0, 2, (32,))
        if args.local_rank in [-1, 0]:
            torch.save((features, labels), cached_features_file)
    if args.local_rank == 0 and not evaluate:
        dist.barrier()
    return TensorDataset(features, labels)


def train(args, dataset, model):
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    for features, labels in DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset)):
        nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
        optimizer.zero_grad()


def evaluate(args, model):
    dataset = load_and_cache_examples(args, evaluate=True)
    with torch.no_grad():
        features, labels = dataset.tensors
        return {"acc": (model(features).argmax(1) == labels).float().mean().item()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", default=tempfile.gettempdir())
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", "-1")))
    parser.add_argument("--do_eval", type=bool, default=True)
    args = parser.parse_args()
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    model = nn.Linear(8, 2)
    train(args, load_and_cache_examples(args), model)
    if args.do_eval and args.local_rank in [-1, 0]:
        results = evaluate(args, model)
        print(results, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
