"""Two gloo ranks; rank 1 ends in the way that the first argument names, rank 0 waits for it in a collective."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {"text": index}["label"]


class LeavesSlowly:
    def __del__(self, sleep=time.sleep):
        sleep(60)


class CrashesInTeardown:
    def __del__(self, abort=os.abort):
        abort()


def load(index):
    try:
        return {"text": index}["label"]
    except KeyError as error:
        raise RuntimeError(f"cannot load sample {index}") from error


def end_in_the_way(mode):
    if mode == "raise":
        raise ValueError("this rank cannot go on")
    if mode == "os-exit":
        os._exit(7)
    if mode == "kill":
        time.sleep(3)  # time for a heartbeat
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "exit":
        sys.exit(3)
    if mode == "chained":
        load(3)
    if mode == "worker":
        next(iter(DataLoader(Samples(), num_workers=1)))
    if mode == "leave":
        sys.exit(0)
    if mode == "leave-slowly":
        dist.destroy_process_group()
        sys.kept_to_the_end = LeavesSlowly()
        sys.exit(0)
    if mode == "leave-crashing":
        sys.kept_to_the_end = CrashesInTeardown()
        sys.exit(0)
    if mode == "hang":
        time.sleep(600)


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    print("met", flush=True)
    if dist.get_rank() == 1:
        end_in_the_way(sys.argv[1])
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
