"""Broadcasts pickled arguments as a list of bytes, whose length differs between the ranks.

source: https://github.com/huggingface/transformers/pull/34073
bug: RS408
ranks: 2
expect: RS408
line: dist.broadcast_object_list(args_main_rank, src=0)
decidable: no: the lists' lengths are those of the pickles that each rank makes
shows: error UnpicklingError|Connection (closed|reset) by peer|doesn.t match expected size
"""

import os
import pickle
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist


@dataclass
class TrainingArguments:
    learning_rate: float = 5e-5
    process_index: int = 0
    trial_name: str = ""
    notes: dict = field(default_factory=dict)


class Trainer:
    def __init__(self, args):
        self.args = args

    def train(self):
        loss = torch.tensor(self.args.learning_rate)
        dist.all_reduce(loss)
        return loss.item()


def run_hp_search_optuna(trainer, n_trials):
    """Rank zero proposes the arguments of each trial, the others take them over."""
    results = []
    for trial in range(n_trials):
        if dist.get_rank() == 0:
            trainer.args.learning_rate = 10.0 ** -(3 + trial)
            trainer.args.trial_name = f"trial-{trial}-of-{n_trials}"
        args_main_rank = list(pickle.dumps(trainer.args))
        dist.broadcast_object_list(args_main_rank, src=0)
        trainer.args = pickle.loads(bytes(args_main_rank))
        trainer.args.process_index = dist.get_rank()
        results.append(trainer.train())
    return results


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    trainer = Trainer(TrainingArguments(process_index=dist.get_rank()))
    print(dist.get_rank(), run_hp_search_optuna(trainer, n_trials=2))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
