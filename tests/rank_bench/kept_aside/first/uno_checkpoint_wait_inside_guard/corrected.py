"""Writes a LoRA checkpoint every few steps; all processes wait, then the main one writes.

source: https://github.com/bytedance/UNO/issues/71
bug: RS401
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import argparse
import logging
import os
import tempfile
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs

logger = logging.getLogger(__name__)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_train_steps", type=int, default=8)
    parser.add_argument("--checkpointing_steps", type=int, default=2)
    parser.add_argument("--project_dir", default=tempfile.gettempdir())
    return parser.parse_args()


def main(args):
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(
        cpu=True,
        gradient_accumulation_steps=2,
        kwargs_handlers=[InitProcessGroupKwargs(timeout=timeout)],
    )
    dit = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    dit[0].requires_grad_(False)
    optimizer = torch.optim.AdamW([p for p in dit.parameters() if p.requires_grad], lr=1e-4)
    dit, optimizer = accelerator.prepare(dit, optimizer)

    global_step = 0
    while global_step < args.max_train_steps:
        with accelerator.accumulate(dit):
            loss = dit(torch.randn(2, 4)).pow(2).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            global_step += 1

        is_save_step = global_step > 0 and global_step % args.checkpointing_steps == 0
        if accelerator.sync_gradients and is_save_step:
            accelerator.wait_for_everyone()
        if accelerator.sync_gradients and accelerator.is_main_process and is_save_step:
            logger.info(f"saving checkpoint in {global_step=}")
            unwrapped = accelerator.unwrap_model(dit)
            trained = {n for n, p in unwrapped.named_parameters() if p.requires_grad}
            state = {k: v for k, v in unwrapped.state_dict().items() if k in trained}
            torch.save(state, os.path.join(args.project_dir, f"dit_lora_{global_step}.pt"))


if __name__ == "__main__":
    main(parse_args())
