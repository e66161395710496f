"""Runs a pipeline whose last stage has nothing to report and leaves the aggregation before its collective.

source: https://github.com/bo-ke/llm-internal-medicine/pull/45
bug: RS401
ranks: 3
expect: RS401
file: monitor_incorrect.py
line: dist.all_gather_object(gathered, self.local_metrics())
decidable: yes
shows: hang
"""

import json
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from monitor_incorrect import LayerMonitor
from torch import nn


def build_stage(stage: int, num_stages: int) -> nn.ModuleList:
    """The layers of one pipeline stage; the last stage holds the output head alone."""
    if stage == num_stages - 1:
        return nn.ModuleList([nn.Identity()])
    return nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    stage, num_stages = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(stage)
    layers = build_stage(stage, num_stages)
    monitor = LayerMonitor(stage, num_stages)

    for step in range(2):
        hidden = torch.randn(4, 8)
        for index, layer in enumerate(layers):
            hidden = layer(hidden)
            monitor.observe(f"stage{stage}.layer{index}", hidden)
        report = monitor.gather_and_aggregate()
        if stage == 0:
            print(json.dumps({"step": step, "layers": len(report)}), flush=True)
        # All stages agree on the gradient norm of the step.
        norm = hidden.detach().norm()
        dist.all_reduce(norm)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
