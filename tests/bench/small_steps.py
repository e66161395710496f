"""Small steps on the CPU under DistributedDataParallel, by turns with and without the agent that came with this process;
writes the processor seconds of each block of steps, and of the heartbeats.
"""

import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

BLOCKS = 120
STEPS_PER_BLOCK = 10
BEATS = 50

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
layers = [nn.Sequential(nn.Linear(128, 128), nn.ReLU()) for _ in range(4)]
model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers, nn.Linear(128, 8)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
inputs, labels = torch.randn(64, 128), torch.randint(0, 8, (64,))

optimizer_hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
watched = (dist.all_reduce, dict(optimizer_hooks))
bare = (dist.all_reduce.__wrapped__, {})


def use(functions):
    """The script's functions with the agent around them, or without."""
    dist.all_reduce, hooks = functions
    optimizer_hooks.clear()
    optimizer_hooks.update(hooks)


def steps(number):
    for _ in range(number):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach())


def measured(action, *arguments):
    start = time.process_time()
    action(*arguments)
    return time.process_time() - start


assert watched[1], "the agent counts steps"
heartbeat = sys.modules["ranksafe_agent.heartbeat"]._current
heartbeat.pause()
steps(20)
blocks = []
for number in range(BLOCKS):
    # Whoever comes second may find the processor warmer.
    order = (watched, bare) if number % 2 else (bare, watched)
    spent = {}
    for functions in order:
        use(functions)
        spent[functions is watched] = measured(steps, STEPS_PER_BLOCK)
    blocks.append([spent[True], spent[False]])
use(watched)
beats = [measured(heartbeat._beat) for _ in range(BEATS)]
path = pathlib.Path(os.environ["SMALL_STEPS_OUTPUT"], f"{dist.get_rank()}.json")
path.write_text(json.dumps({"blocks": blocks, "beats": beats}))
dist.destroy_process_group()
