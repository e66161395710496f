"""The fault matrix: programs that fail in one way each, run many times, and what ranksafe says of them.

    make fault-matrix
    python -m tests.fault_matrix.fault_matrix [--target T | --own-host | --own-cluster] [--repetitions N] [--at-once N]
        [--only NAME]...

Prints a table in Markdown; docs/fault-matrix.md keeps one. The exit status is 1 when anything was not right. All rows
are run once, then all a second time, and so on: an interrupt (Ctrl+C) prints the table of what was run until then.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from ranksafe.runs.errors import RunNotPossible

from tests.fault_matrix import own_cluster, own_host
from tests.fault_matrix.execution import Judgement, execute, remove_control_groups
from tests.fault_matrix.header import Fault, read_faults
from tests.targets.slurm_cluster import SlurmCluster

_BEGIN, _END = "<!-- {kind}table: begin -->", "<!-- {kind}table: end -->"
_HEAD = "| fault | runs | outcome | rank | line | kind | no orphan | seconds |"
_OWN = {
    own_cluster.TARGET: "A Slurm cluster of two nodes on this machine, one gloo rank on the CPU of each.",
    own_host.TARGET: "This machine as a host behind ssh, two gloo ranks on the CPU.",
}
_RULE = "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"


def main(words: Sequence[str] | None = None) -> int:
    """Run the matrix; 0 when every run was right, 1 when one was not, 2 when a target cannot be used."""
    arguments = _parser().parse_args(words)
    named = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    own = arguments.own_host or arguments.own_cluster
    if arguments.python is None and (arguments.target == "local" or own):
        arguments.python = Path(named) if named else None
    if own and arguments.python is None:
        raise SystemExit("name the interpreter with torch: --python")
    faults = [
        fault
        for fault in read_faults()
        if not arguments.only or any(fault.identifier.startswith(name) for name in arguments.only)
        if fault.hosts == 1 or arguments.own_cluster
    ]
    if not faults:
        sys.stderr.write("no such fault; there are:\n")
        sys.stderr.writelines(f"  {fault.identifier}\n" for fault in read_faults())
        return 2
    judged: dict[str, list[Judgement]] = {fault.identifier: [] for fault in faults}
    try:
        if arguments.own_cluster:
            arguments.target = own_cluster.TARGET
            with own_cluster.own_cluster(arguments.python) as cluster:
                _run_all(faults, arguments, judged, cluster)
        elif arguments.own_host:
            arguments.target, python = own_host.TARGET, arguments.python
            arguments.python = None
            with own_host.own_host(python):
                _run_all(faults, arguments, judged)
        else:
            _run_all(faults, arguments, judged)
    except RunNotPossible as error:
        sys.stderr.write(f"{arguments.target}: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; this much was run:\n")
    rows = [(fault, judged[fault.identifier]) for fault in faults if judged[fault.identifier]]
    table = as_markdown(rows, arguments.target)
    sys.stdout.write(table)
    if arguments.write is not None:
        write_into(arguments.write, table, arguments.target)
    return 0 if all(judgement.right for _, judgements in rows for judgement in judgements) else 1


def _run_all(
    faults: Sequence[Fault],
    arguments: argparse.Namespace,
    judged: dict[str, list[Judgement]],
    own: SlurmCluster | None = None,
) -> None:
    """Put the judgements into ``judged`` as they come; where a host goes down, alone and at the end."""
    with ThreadPoolExecutor(max_workers=arguments.at_once) as pool:
        waiting = {
            pool.submit(execute, fault, arguments.target, arguments.python): fault
            for _ in range(arguments.repetitions)
            for fault in faults
            if fault.hosts == 1
        }
        try:
            for done in as_completed(waiting):
                judged[waiting[done].identifier].append(done.result())
                _say(waiting[done], judged[waiting[done].identifier], arguments.repetitions)
        finally:
            pool.shutdown(cancel_futures=True)
            remove_control_groups()
    for _ in range(arguments.repetitions):
        for fault in (each for each in faults if each.hosts > 1):
            judged[fault.identifier].append(execute(fault, arguments.target, arguments.python, own))
            _say(fault, judged[fault.identifier], arguments.repetitions)


def _say(fault: Fault, judgements: Sequence[Judgement], repetitions: int) -> None:
    last = judgements[-1]
    word = "right" if last.right else "WRONG"
    progress = f"{fault.identifier} {len(judgements)}/{repetitions}: {word}, {last.seconds:.1f} s"
    sys.stderr.write(progress + "\n")
    if not last.right:
        sys.stderr.write(f"  {last.seen}; left behind: {last.orphans}\n")
    sys.stderr.flush()


def as_markdown(rows: Sequence[tuple[Fault, Sequence[Judgement]]], target: str) -> str:
    """The table, a row per fault, counts of what was right."""
    where = _OWN.get(target, f"Target `{target}`, two gloo ranks on the CPU.")
    lines = [where, "", _HEAD, _RULE]
    for fault, judgements in rows:
        runs = len(judgements)
        right = [
            sum(judgement.outcome for judgement in judgements),
            sum(judgement.rank for judgement in judgements),
            sum(judgement.line for judgement in judgements),
            sum(judgement.kind for judgement in judgements),
            sum(not judgement.orphans for judgement in judgements),
        ]
        simulated = any(judgement.simulated for judgement in judgements)
        name = f"{fault.name} (simulated with SIGKILL)" if simulated else fault.name
        seconds = statistics.median(judgement.seconds for judgement in judgements)
        counts = " | ".join(f"{count}/{runs}" for count in right)
        lines.append(f"| {name} | {runs} | {counts} | {seconds:.1f} |")
    return "\n".join(lines) + "\n"


def write_into(page: Path, table: str, target: str = "local") -> None:
    """Put the table between the page's two marks for this kind of target. Raises SystemExit where they are missing."""
    kind = "" if target == "local" else target.partition(":")[0] + " "
    marks = _BEGIN.format(kind=kind), _END.format(kind=kind)
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not (begin and end):
        raise SystemExit(f"{page} has no {marks[0]} and {marks[1]}")
    page.write_text(f"{before}{begin}\n{table}{end}{after}", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Run the fault matrix and print its table.")
    parser.add_argument("--target", default="local", help="local, ssh:HOST or slurm:NAME")
    parser.add_argument(
        "--own-host",
        action="store_true",
        help="a host behind an sshd on the loopback address, started for this and ended with it",
    )
    parser.add_argument(
        "--own-cluster",
        action="store_true",
        help="a Slurm cluster of two nodes, started for this and ended with it; also runs what takes a host away",
    )
    parser.add_argument("--repetitions", type=int, default=1, metavar="N")
    parser.add_argument(
        "--at-once",
        type=int,
        default=1,
        metavar="N",
        help="so many runs beside each other; a run that hangs needs no processor",
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="faults whose name begins so; may be repeated",
    )
    parser.add_argument(
        "--python",
        type=Path,
        help="the interpreter with torch; default: here RANKSAFE_TEST_TORCH_PYTHON, else what the target finds",
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
