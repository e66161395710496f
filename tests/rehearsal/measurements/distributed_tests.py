"""torch's own distributed tests on simulated devices, with nccl on two ranks.

    PYTHONPATH=server:rules python tests/rehearsal/measurements/distributed_tests.py PYTHON [--minutes 15] [--every 1] [--first 0]

PYTHON is an interpreter with torch; ``--packages DIR`` names a folder with expecttest, which torch's tests import. The
tests are those of ``torch.testing._internal.distributed.distributed_test``: DistributedTest._DistTestBase, the class that
torch's own test/distributed/test_distributed_spawn.py runs with BACKEND=nccl. Two processes run them one after another,
each with a process group of its own, as the spawning test class does; they are started again after a failure. Prints
markdown; ``--json FILE`` keeps every result. Outcomes: passed, skipped (by the test itself), failed, limit (of the
simulation), package (one that the test needs is not installed), hung (no end within a minute).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import IO, Any

RANKS = 2
LONGEST_SECONDS = 60.0
LIMIT = "ranksafe simulation limit: "


def test_names() -> list[str]:
    """All test methods of the class, in the order of their names."""
    from torch.testing._internal.distributed.distributed_test import DistributedTest

    return sorted(name for name in dir(DistributedTest._DistTestBase) if name.startswith("test_"))


def as_rank(folder: str) -> None:
    """One of the two processes: read a test's name per line, run it, and answer with a line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed import distributed_test

    class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        """As TestDistBackendWithSpawn, without the spawning."""

        def setUp(self) -> None:
            self.skip_return_code_checks: list[Any] = []

        def tearDown(self) -> None:
            pass

    rank = int(os.environ["RANK"])
    # Its barrier is a poll of files for 10 seconds, which a busy machine needs for less.
    distributed_test.Barrier.sync.__func__.__defaults__ = (None, LONGEST_SECONDS / 2)
    print("ready", file=answers, flush=True)
    for number, line in enumerate(sys.stdin):
        name = line.strip()
        torch.cuda.set_device(0)
        torch.manual_seed(0)
        outcome, text = "passed", ""
        try:
            if getattr(getattr(Suite, name), "__unittest_skip__", False):
                raise distributed_test.unittest.SkipTest(getattr(Suite, name).__unittest_skip_why__)
            suite = Suite(name)
            suite.rank, suite.file_name = rank, os.path.join(folder, f"store-{number}-{name}")
            dist.init_process_group(
                "nccl", init_method=suite.init_method, world_size=RANKS, rank=rank
            )
            suite._barrier()
            getattr(suite, name)()
            suite._barrier()
        except distributed_test.unittest.SkipTest as skip:
            outcome, text = "skipped", str(skip)
        except SystemExit as leave:
            skipped = isinstance(leave.code, int) and leave.code in range(70, 100)
            outcome, text = ("skipped" if skipped else "failed"), f"exit status {leave.code}"
        except BaseException as error:
            package = isinstance(error, ImportError) or "name 'torchvision' is not defined" in str(
                error
            )
            outcome = "limit" if LIMIT in str(error) else "package" if package else "failed"
            text = f"{type(error).__name__}: {error}".partition("\n\nTo execute this test")[0]
        if outcome in ("passed", "skipped") and dist.is_initialized():
            dist.destroy_process_group()
        print(json.dumps([outcome, text[:600]]), file=answers, flush=True)


class Ranks:
    """The two processes, started again when one failed or hung."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.processes: list[subprocess.Popen[str]] = []
        self.last_words = folder / "stderr.txt"

    def start(self) -> None:
        self.count += 1
        folder = self.folder / str(self.count)
        for name in ("barrier", "test_dir", "init_dir"):
            (folder / name).mkdir(parents=True)
        self.processes = [self._process(rank, folder) for rank in range(RANKS)]
        for process in self.processes:
            assert _output(process).readline().strip() == "ready", self.last_words.read_text()[
                -2000:
            ]

    def _process(self, rank: int, folder: Path) -> subprocess.Popen[str]:
        variables = {
            "BACKEND": "nccl", "WORLD_SIZE": str(RANKS), "RANK": str(rank), "LOCAL_RANK": str(rank),
            "TEMP_DIR": str(folder), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0",
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, __file__, "--as-rank", str(folder)],
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.last_words.open("a"),
            text=True,
        )

    def run(self, name: str) -> tuple[str, str]:
        """The worse outcome of the two ranks."""
        if not self.processes:
            self.start()
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(name + "\n")
            process.stdin.flush()
        guard = threading.Timer(LONGEST_SECONDS, self.stop)
        guard.start()
        began = time.monotonic()
        answers = [_output(process).readline() for process in self.processes]
        hung = time.monotonic() - began >= LONGEST_SECONDS
        guard.cancel()
        results = [json.loads(answer) if answer else None for answer in answers]
        known = [(result[0], result[1]) for result in results if result is not None]
        severity = ("limit", "failed", "package", "skipped", "passed")
        worst = min(known, key=lambda result: severity.index(result[0]), default=("hung", ""))
        if hung and worst[0] in ("passed", "skipped"):
            worst = ("hung", "")
        elif len(known) < RANKS and not hung:
            worst = ("failed", "a rank died: " + self.last_words.read_text()[-300:])
        if worst[0] not in ("passed", "skipped"):
            self.stop()
        return worst

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes = []


def _output(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def inside(minutes: float, first: int, every: int) -> None:
    """The half that runs with simulated devices: print one JSON line per test."""
    names = test_names()[first::every]
    end = time.monotonic() + minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        ranks = Ranks(Path(folder))
        for name in names:
            if time.monotonic() > end:
                break
            outcome, text = ranks.run(name)
            print(json.dumps({"test": name, "outcome": outcome, "text": text}), flush=True)
        ranks.stop()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("python", type=Path)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--every", type=int, default=1, help="every N-th test, for a fair sample")
    parser.add_argument("--first", type=int, default=0, help="the number of the first test, from 0")
    parser.add_argument("--packages", default="")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from conftest import AGENT, INJECTED, compiled_for, run_rehearsal

    with tempfile.TemporaryDirectory() as folder:
        done = run_rehearsal(
            compiled_for(arguments.python),
            Path(folder),
            Path(__file__).resolve(),
            *("--inside", str(arguments.minutes), str(arguments.first), str(arguments.every)),
            devices=RANKS,
            environment={
                "PYTHONPATH": os.pathsep.join([str(AGENT), str(INJECTED), arguments.packages]),
                "PYTHONWARNINGS": "ignore",
                "BACKEND": "nccl",
                "WORLD_SIZE": str(RANKS),
                "TEMP_DIR": folder,
            },
            timeout=arguments.minutes * 60 + 300,
        )
    results = [json.loads(line) for line in done.lines if line.startswith("{")]
    if not results:
        print(done.stderr[-3000:], file=sys.stderr)
        return 1
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    counts = Counter(result["outcome"] for result in results)
    print("| " + " | ".join(counts) + " | run |\n|" + "---|" * (len(counts) + 1))
    print("| " + " | ".join(str(count) for count in counts.values()) + f" | {len(results)} |\n")
    print("| test | outcome | text |\n|---|---|---|")
    for result in results:
        if result["outcome"] not in ("passed", "skipped"):
            text = " ".join(result["text"].split())[:200].replace("|", "\\|")
            print(f"| {result['test']} | {result['outcome']} | {text} |")
    return 0


if __name__ == "__main__":
    if "--as-rank" in sys.argv:
        as_rank(sys.argv[-1])
    elif "--inside" in sys.argv:
        inside(float(sys.argv[-3]), int(sys.argv[-2]), int(sys.argv[-1]))
    else:
        sys.exit(main())
