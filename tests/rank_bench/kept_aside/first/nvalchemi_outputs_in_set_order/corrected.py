"""Reduces a model's outputs one by one in sorted order, the same in all processes.

source: https://github.com/NVIDIA/nvalchemi-toolkit/pull/143
bug: RS401
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

PER_GRAPH = {"energy", "stress", "virial", "charge"}


class PotentialModel:
    supported = {"energy", "forces", "stress", "virial", "charge", "charges", "dipoles", "hessian"}

    def __init__(self, active_outputs):
        self.active_outputs = active_outputs

    def output_data(self):
        return self.active_outputs & self.supported

    def __call__(self, positions):
        outputs = dict.fromkeys(self.output_data())
        for key in outputs:
            outputs[key] = positions.sum() if key in PER_GRAPH else positions.clone()
        return outputs


def consolidate(outputs, world_size):
    """Sum what belongs to the whole graph, exchange what belongs to an atom."""
    done = {}
    for key, value in sorted(outputs.items()):
        if key in PER_GRAPH:
            dist.all_reduce(value)
            done[key] = value
        else:
            parts = [torch.empty_like(value) for _ in range(world_size)]
            dist.all_gather(parts, value)
            done[key] = torch.cat(parts)
    return done


def main():
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    model = PotentialModel(set(PotentialModel.supported))
    for step in range(3):
        result = consolidate(model(torch.ones(4, 3)), dist.get_world_size())
        if dist.get_rank() == 0:
            print(step, sorted(result))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
