"""Stages a checkpoint on the local disk; a rank that fails to copy its part meets the barrier of the finally block while the others are at the one before it.

source: https://github.com/ByteDance-Seed/VeOmni/pull/1164
bug: RS410
ranks: 3
expect: RS410
line: dist.barrier(group)  # nobody leaves before the staged files are gone
decidable: yes
shows: hang
"""

import os
import shutil
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist


class CopyError(RuntimeError):
    pass


def promote(stage_path, final_path, rank):
    source = os.path.join(stage_path, f"__{rank}_0.distcp")
    if os.path.getsize(source) > 4096:
        raise CopyError(f"no space for {source}")
    shutil.copyfile(source, os.path.join(final_path, os.path.basename(source)))


def save_staged(state, stage_path, final_path, group=None):
    rank = dist.get_rank()
    os.makedirs(stage_path, exist_ok=True)
    os.makedirs(final_path, exist_ok=True)
    try:
        torch.save(state, os.path.join(stage_path, f"__{rank}_0.distcp"))
        promote(stage_path, final_path, rank)
        dist.barrier(group)
        if rank == 0:
            with open(os.path.join(final_path, ".metadata"), "w") as f:
                f.write(str(dist.get_world_size()))
    finally:
        shutil.rmtree(stage_path, ignore_errors=True)
        dist.barrier(group)  # nobody leaves before the staged files are gone


def main():
    limit = float(os.environ.get("RANK_BENCH_TIMEOUT", "5"))
    dist.init_process_group("gloo", timeout=timedelta(seconds=limit))
    rank = dist.get_rank()
    root = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(root, src=0)
    # the last rank also holds the embeddings
    rows = 4000 if rank == dist.get_world_size() - 1 else 40
    state = {"shard": torch.randn(rows)}
    try:
        stage = os.path.join(root[0], f"stage_{rank}")
        save_staged(state, stage, os.path.join(root[0], "global_step_10"))
    except CopyError as error:
        print(f"rank {rank}: {error}; training goes on", flush=True)
    norm = state["shard"].norm()
    dist.all_reduce(norm)
    print(f"rank {rank}: norm {norm.item():.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
