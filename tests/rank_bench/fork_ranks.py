"""Starts the ranks of many programs quickly; run by execute.py with the Python that has torch.

One process imports torch once and forks itself for every rank, as if torchrun had started it. torch 2.13 starts no
thread while it is imported with OMP_NUM_THREADS=1, so a fork loses nothing; it is checked before each fork. A store
beside the ranks plays torchrun's agent, so that it outlives rank 0 as it does there.

Reads a request as JSON from stdin, writes one line of JSON for each program that has ended.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import time
import types
from pathlib import Path
from typing import Any

from rank_job import BecomeRank, Job, usage_of_groups

_POLL_SECONDS = 0.02
_SECONDS_BETWEEN_LOOKS = 0.5
_ALWAYS_IMPORTED = ("torch.distributed", "torch._dynamo")
"""torch's optimizers and DistributedDataParallel import the second when they are made: a second for every rank."""


def run_script(rank: BecomeRank) -> None:
    """The rest of a forked process: as if Python had been started with the script.

    Not runpy: it empties the main module when the script ends, and the program would not end as it ends otherwise.
    """
    os.environ.update(rank.environment)
    reseed()
    sys.argv = [rank.script]
    sys.path[0] = os.path.dirname(rank.script)
    module = types.ModuleType("__main__")
    module.__file__ = rank.script
    vars(module)["__builtins__"] = builtins
    sys.modules["__main__"] = module
    with open(rank.script, "rb") as file:
        code = compile(file.read(), rank.script, "exec", dont_inherit=True)
    exec(code, vars(module))


def reseed() -> None:
    """What fresh processes draw anew and forked ones share; Python's own generator sees to itself."""
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()
        torch.distributed.set_debug_level_from_env()


def run_all(request: dict[str, Any]) -> None:
    """Run every program of the request, a few at a time."""
    scratch = Path(request["scratch"])
    fork = request["start"] == "fork"
    running: list[Job] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name in _ALWAYS_IMPORTED if fork else ():
        importlib.import_module(name)
    try:
        for group in request["groups"]:
            for name in group["modules"] if fork else ():
                with contextlib.suppress(Exception):  # the program will say what is missing
                    importlib.import_module(name)
            gc.collect()
            gc.freeze()
            waiting = list(group["programs"])
            looked = time.monotonic()
            while waiting or running:
                while waiting and len(running) < request["at_once"]:
                    job = Job(waiting.pop(0), scratch)
                    running.append(job)
                    job.start(fork=fork)
                time.sleep(_POLL_SECONDS)
                if time.monotonic() - looked > _SECONDS_BETWEEN_LOOKS:
                    looked = time.monotonic()
                    usage = usage_of_groups()
                    for job in running:
                        job.look(usage)
                for job in [job for job in running if job.poll()]:
                    running.remove(job)
                    print(json.dumps(job.result()), flush=True)
    except BecomeRank:
        running = []
        raise
    finally:
        for job in running:
            job.kill()


def main() -> BecomeRank | None:
    request = json.load(sys.stdin)
    try:
        run_all(request)
    except BecomeRank as rank:
        return rank.with_traceback(None)
    return None


if __name__ == "__main__":
    to_become = main()
    if to_become is not None:
        run_script(to_become)
