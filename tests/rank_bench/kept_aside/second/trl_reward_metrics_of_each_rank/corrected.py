"""Ranks agree on the names of the metrics that reward functions have logged before they gather them.

source: https://github.com/huggingface/trl/issues/7310
bug: RS406
ranks: 2
expect: clean
shows: fine
"""

import os
from collections import defaultdict
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.utils import gather_object
from torch.utils.data import DataLoader


def format_reward(completions, log_metric):
    rewards = []
    for completion in completions:
        answered = completion.endswith("</answer>")
        if answered:
            log_metric("answer_length", float(len(completion)))
        rewards.append(1.0 if answered else 0.0)
    log_metric("format_reward", sum(rewards) / len(rewards))
    return rewards


class RewardLogger:
    def __init__(self, accelerator):
        self.accelerator = accelerator
        self._pending_metrics = defaultdict(list)
        self._metrics = defaultdict(list)

    def log_metric(self, name, value):
        self._pending_metrics[name].append(value)

    def score(self, completions):
        rewards = torch.tensor(format_reward(completions, self.log_metric))
        self._aggregate()
        return self.accelerator.gather(rewards)

    def _aggregate(self):
        names = set(gather_object(list(self._pending_metrics)))
        for name in sorted(names):
            values = self._pending_metrics[name] or [float("nan")]
            local_mean = torch.tensor(values).mean()
            global_mean = self.accelerator.gather(local_mean).nanmean().item()
            self._metrics[name].append(global_mean)
        self._pending_metrics.clear()


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    completions = ["<answer>4</answer>", "four", "<answer>12</answer>", "<answer>9</answer>"]
    completions += ["no idea", "<answer>7</answer>", "<answer>1</answer>", "..."]
    loader = accelerator.prepare(DataLoader(completions, batch_size=1))
    logger = RewardLogger(accelerator)
    for batch in loader:
        rewards = logger.score(batch)
        accelerator.print(f"mean reward {rewards.mean().item():.2f}")
    accelerator.print({name: values[-1] for name, values in logger._metrics.items()})
    accelerator.end_training()


if __name__ == "__main__":
    main()
