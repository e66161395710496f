"""Runs programs on their ranks (gloo, CPU) and says whether what their headers claim is what happens.

    python -m tests.rank_bench.execute [FOLDER | PROGRAM.py ...] [--start fresh] [--explain]

Needs an interpreter with torch: --python, else RANKSAFE_TEST_TORCH_PYTHON.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.rank_bench.execution import TIMED_OUT, Execution, Rank, mismatches, print_execution
from tests.rank_bench.header import PROGRAMS, Program, folders_with, read_program

HERE = Path(__file__).resolve().parent
TIMEOUT_SECONDS = 4.0
"""RANK_BENCH_TIMEOUT, the timeout of the process groups."""
QUIET_SECONDS = 2 * TIMEOUT_SECONDS + 2
"""A program that has used no processor time for so long is taken to wait for ever, and ended."""
LIMIT_SECONDS = 300.0
"""After this long any program is ended; that alone is no hang."""
AT_ONCE = 4
"""Programs that run at the same time: most of those that hang only wait."""

_RACES = 16
"""Runs of a program that hangs in about half of them."""
_ATTEMPTS = 4
"""Of a program whose rank was aborted by torch's own teardown."""
_IMPORTED_FIRST = ("torch", "numpy", "accelerate", "transformers", "trl")


def execute(
    programs: Iterable[Program],
    python: Path,
    *,
    start: str = "fork",
    confirm: bool = True,
    explain: bool = False,
    at_once: int = AT_ONCE,
) -> Iterator[Execution]:
    """Run programs, in any order, with the ``python`` that has torch.

    ``start``: `fork` imports torch once for all; `fresh` starts an interpreter for each rank. With ``confirm`` a claim
    that does not hold in forked ranks is tried in fresh ones, alone and with more time, and that decides: forked ranks
    share the seed of ``hash``, and a busy machine may be too slow. ``explain`` runs those that hang once more with
    TORCH_DISTRIBUTED_DEBUG=DETAIL.
    """
    doubtful: dict[str, Execution] = {}
    hanging: dict[str, Execution] = {}
    for execution in _run(list(programs), python, start, at_once, {}):
        if not execution.holds and confirm:
            doubtful[execution.program.name] = execution
        elif explain and execution.seen.startswith("hang"):
            hanging[execution.program.name] = execution
        else:
            yield execution
    twice = [execution.program for execution in doubtful.values()]
    for execution in _confirmed(twice, python):
        execution.forked = doubtful[execution.program.name].seen
        if explain and execution.seen.startswith("hang"):
            hanging[execution.program.name] = execution
        else:
            yield execution
    detailed = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
    again = [execution.program for execution in hanging.values()]
    for execution in _run(again, python, start, at_once, detailed):
        found = hanging[execution.program.name]
        found.explanation = mismatches(execution)
        yield found


def _confirmed(programs: Sequence[Program], python: Path) -> Iterator[Execution]:
    """Each in fresh ranks, alone and with more time; again where only the way out went wrong, or where the ranks race
    and none of them had to wait this time."""
    left = list(programs)
    for attempt in range(1, _RACES + 1):
        again: list[Program] = []
        for execution in _run(left, python, "fresh", 1, {}, patience=2.0):
            raced = execution.program.shows.sometimes and not execution.holds
            if (execution.aborted_while_leaving and attempt < _ATTEMPTS) or (
                raced and attempt < _RACES
            ):
                again.append(execution.program)
            else:
                yield execution
        left = again


def _run(
    programs: Sequence[Program],
    python: Path,
    start: str,
    at_once: int,
    environment: dict[str, str],
    patience: float = 1.0,
) -> Iterator[Execution]:
    if not programs:
        return
    with tempfile.TemporaryDirectory(prefix="ranksafe-rank-bench-") as name:
        scratch = Path(name).resolve()
        by_id = {f"program{number}": program for number, program in enumerate(programs)}
        wanted = {
            key: {
                "id": key,
                "script": str(program.path.resolve()),
                "ranks": program.ranks,
                "environment": {
                    "RANK_BENCH_TIMEOUT": str(TIMEOUT_SECONDS * patience),
                    **environment,
                },
                "quiet_seconds": QUIET_SECONDS * patience,
                "limit_seconds": LIMIT_SECONDS * patience,
                "enough": {"hang": TIMED_OUT, "error": program.shows.pattern}.get(
                    program.shows.kind, ""
                )
                if not environment
                else "",
            }
            for key, program in by_id.items()
        }
        request = {
            "scratch": str(scratch),
            "start": start,
            "at_once": at_once,
            "groups": list(_groups(by_id, wanted)),
        }
        for answer in _worker(python, request):
            folder = scratch / answer["id"]
            ranks = [
                Rank(status, *(_text(folder / f"rank{rank}.{kind}") for kind in ("out", "err")))
                for rank, status in enumerate(answer["exits"])
            ]
            program = by_id.pop(answer["id"])
            yield Execution(program, ranks, answer["ended_by"], answer["seconds"], start)
        if by_id:
            raise RuntimeError(f"{python} ended early; not run: {sorted(by_id)}")


def _worker(python: Path, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Ask the process that starts ranks, and end it and them whatever happens here."""
    process = subprocess.Popen(
        [str(python), str(HERE / "fork_ranks.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(request["scratch"]),
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        json.dump(request, process.stdin)
        process.stdin.close()
        for line in process.stdout:
            yield json.loads(line)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment(scratch: str) -> dict[str, str]:
    dropped = (
        "TORCH_",
        "TORCHELASTIC_",
        "NCCL_",
        "ACCELERATE_",
        "PYTHONPATH",
        "WORLD_SIZE",
        "RANK",
    )
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    return {
        **kept,
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELERATE_USE_CPU": "true",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": f"{scratch}/hub",
        "TOKENIZERS_PARALLELISM": "false",
        "TMPDIR": scratch,
        **({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}),
    }


def _groups(programs: dict[str, Program], wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Programs by the largest library that they import: what is imported stays for all that follow."""
    imported = {key: _imports(program) for key, program in programs.items()}
    for number, library in enumerate(_IMPORTED_FIRST):
        larger = _IMPORTED_FIRST[number + 1 :]
        members = [
            key
            for key, names in imported.items()
            if _uses(names, library) and not any(_uses(names, other) for other in larger)
        ]
        modules = sorted({name for key in members for name in imported[key]})
        if library == "torch":
            others = [
                key
                for key, names in imported.items()
                if not any(_uses(names, other) for other in _IMPORTED_FIRST)
            ]
            members += others
        if members:
            yield {"modules": modules, "programs": [wanted[key] for key in members]}


def _uses(names: set[str], library: str) -> bool:
    return any(name.partition(".")[0] == library for name in names)


def _imports(program: Program) -> set[str]:
    """The modules of large libraries that a program's files name in import statements."""
    names: set[str] = set()
    for file in program.files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
    return {name for name in names if name.partition(".")[0] in _IMPORTED_FIRST}


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def chosen_python(argument: Path | None) -> Path:
    """The interpreter with torch. Raises SystemExit where none was named."""
    chosen = argument or os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if not chosen:
        raise SystemExit(
            "needs torch: --python, or RANKSAFE_TEST_TORCH_PYTHON=$(python tools/environments.py torch)"
        )
    return Path(chosen)


def programs_of(paths: Iterable[Path]) -> list[Program]:
    """The programs named, or below the folders named. Raises HeaderError."""
    programs = []
    for path in paths:
        files = [path] if path.is_file() else [
            folder / name
            for folder in folders_with(path)
            for name in ("incorrect.py", "corrected.py")
            if (folder / name).is_file()
        ]  # fmt: skip
        programs += [read_program(file.resolve()) for file in files]
    return programs


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[PROGRAMS])
    parser.add_argument("--python", type=Path, help="the interpreter with torch")
    parser.add_argument("--start", choices=["fork", "fresh"], default="fork")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="programs at a time")
    parser.add_argument(
        "--once", action="store_true", help="do not try again with fresh interpreters"
    )
    parser.add_argument("--explain", action="store_true", help="DETAIL for those that hang")
    parser.add_argument("--output", action="store_true", help="show what the ranks printed")
    arguments = parser.parse_args(words)
    wrong = 0
    for execution in execute(
        programs_of(arguments.paths),
        chosen_python(arguments.python),
        start=arguments.start,
        confirm=not arguments.once,
        explain=arguments.explain,
        at_once=arguments.at_once,
    ):
        wrong += not execution.holds
        print_execution(execution, output=arguments.output)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
