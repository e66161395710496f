"""Trains a reward model and evaluates it every few steps for the log of the first rank; the evaluation needs all ranks.

source: https://github.com/l294265421/alpaca-rlhf/issues/5
bug: RS401
ranks: 2
expect: RS401
line: reward_score, acc = evaluation_reward(rm_model, eval_dataloader)
decidable: yes
shows: error Received data size doesn't match expected size
"""

import os
from argparse import ArgumentParser
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def get_all_reduce_mean(tensor):
    dist.all_reduce(tensor, op=dist.ReduceOp.SUM)
    return tensor / dist.get_world_size()


def parse_args():
    parser = ArgumentParser()
    parser.add_argument("--eval_steps", type=int, default=3)
    args = parser.parse_args()
    args.global_rank = dist.get_rank()
    return args


def make_loader(size):
    pairs = TensorDataset(torch.randn(size, 8) + 0.5, torch.randn(size, 8))
    return DataLoader(pairs, batch_size=4, sampler=DistributedSampler(pairs))


def evaluation_reward(model, eval_dataloader):
    model.eval()
    correct, total, scores = 0, 0, 0.0
    with torch.no_grad():
        for chosen, rejected in eval_dataloader:
            chosen_score, rejected_score = model(chosen), model(rejected)
            correct += (chosen_score > rejected_score).sum().item()
            total += chosen.shape[0]
            scores += chosen_score.mean().item()
    acc = get_all_reduce_mean(torch.tensor(correct / total)).item()
    scores = get_all_reduce_mean(torch.tensor(scores / len(eval_dataloader))).item()
    model.train()
    return scores, acc


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=limit)
    args = parse_args()
    torch.manual_seed(1234)
    rm_model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.Adam(rm_model.parameters(), lr=1e-2)
    train_dataloader, eval_dataloader = make_loader(48), make_loader(16)

    for step, (chosen, rejected) in enumerate(train_dataloader):
        loss = -F.logsigmoid(rm_model(chosen) - rm_model(rejected)).mean()
        optimizer.zero_grad()
        loss.backward()
        for p in rm_model.parameters():
            p.grad = get_all_reduce_mean(p.grad)
        optimizer.step()
        if (step + 1) % args.eval_steps == 0 and args.global_rank == 0:
            reward_score, acc = evaluation_reward(rm_model, eval_dataloader)
            print(f"step {step} reward {reward_score:.3f} acc {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
