"""Filters the videos that cannot be used before the step, which is not wrapped in try any more.

source: https://github.com/tsujuifu/pytorch_violet/issues/5
bug: RS410
ranks: 2
expect: clean
shows: fine
"""

import math
import os
from datetime import timedelta

import numpy as np
import torch as T
import torch.distributed as DIST
from torch import nn


class VIOLET_Pretrain(nn.Module):
    def __init__(self, size=6):
        super().__init__()
        self.enc = nn.Linear(size, 8)
        self.fc_mtm = nn.Linear(8, 5)

    def forward(self, img, txt):
        return self.fc_mtm(T.relu(self.enc(img + txt)))


class Agent_Pretrain:
    def __init__(self, args, model):
        self.args, self.model = args, model
        self.loss_func = nn.CrossEntropyLoss(ignore_index=-1)
        self.optzr = T.optim.AdamW(self.model.parameters(), lr=args["lr"])

    def step(self, img, txt, ans_mtm, is_train):
        self.optzr.zero_grad()
        out_mtm = self.model(img, txt)
        ls_mtm = self.loss_func(out_mtm, ans_mtm)
        if is_train:
            ls_mtm.backward()
            self.optzr.step()
            return {"mtm": ls_mtm.item()}
        return {"mtm": float((T.argmax(out_mtm, dim=-1) == ans_mtm).float().mean())}

    def reduce_mean(self, v):
        v = T.tensor(v)
        DIST.all_reduce(v)
        return v.item() / DIST.get_world_size()

    def go_dl(self, dl, is_train):
        ret = {"mtm": []}
        for img, txt, ans_mtm in dl:
            if img.shape[1] < txt.shape[1]:
                img = nn.functional.pad(img, (0, txt.shape[1] - img.shape[1]))
            r = self.step(img, txt, ans_mtm, is_train)
            ret = {k: [*values, r[k]] for k, values in ret.items()}
        return {
            k: self.reduce_mean(float(np.average([v for v in values if not math.isnan(v)])))
            for k, values in ret.items()
        }


def get_dl(rank, size_batch=4, count=6):
    generator = T.Generator().manual_seed(rank)
    dl = []
    for number in range(count):
        frames = 4 if (rank, number) == (1, 3) else 6  # a clip that ended early
        img = T.randn(size_batch, frames, generator=generator)
        txt = T.randn(size_batch, 6, generator=generator)
        dl.append((img, txt, T.randint(5, (size_batch,), generator=generator)))
    return dl


if __name__ == "__main__":
    DIST.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    model = T.nn.parallel.DistributedDataParallel(VIOLET_Pretrain())
    agent = Agent_Pretrain({"lr": 1e-3}, model)
    for e in range(2):
        ls_tr = agent.go_dl(get_dl(DIST.get_rank()), True)
        if DIST.get_rank() == 0:
            print(f"Ep {e + 1}: {ls_tr}", flush=True)
        DIST.barrier()
    DIST.destroy_process_group()
