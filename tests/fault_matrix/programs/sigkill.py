"""Rank 1 is killed from outside while it works; it had started a helper that ignores SIGTERM.

fault: SIGKILL
outcome: failed
rank: 1
kind: killed
line: time.sleep(0.05)  # the work
"""

import os
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist

HELPER = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
"""


def work():
    while True:
        time.sleep(0.05)  # the work


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        subprocess.Popen([sys.executable, "-c", HELPER], start_new_session=True)
        threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGKILL)).start()
        work()
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    main()
