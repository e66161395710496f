"""Proofs on CPU ranks, as many as there are in one go: forked from one process that has imported their libraries.

accelerate's launcher imports torch and so does each of its ranks, ten seconds of processor time for a program that
computes for a tenth of one. What a program does is the same in forked ranks; it is judged as `prove` judges it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ranksafe.runs.explain.traceback_text import parse_tracebacks
from ranksafe.runs.proofs.evidence import Execution, ObservedException
from ranksafe.runs.proofs.header import ExpectedException, ProofHeader, read_header
from ranksafe.runs.proofs.judgement import Judgement, judge

from tests.rank_bench import execution
from tests.rank_bench.execute import execute
from tests.rank_bench.header import Program, Shows

_MARK = re.compile(r"^\[rank\d+\]: ?", re.MULTILINE)
"""torch's, before each line of an uncaught exception."""


def judge_forked(programs: Iterable[Path], python: Path) -> dict[Path, Judgement]:
    """What each program shows of what its header declares."""
    headers = {program: read_header(program) for program in programs}
    wanted = [_as_benchmark(program, header) for program, header in headers.items()]
    runs = {run.program.path: run for run in execute(wanted, python, confirm=False, at_once=2)}
    # torch 2.13.0: now and then (1 of 120 runs under load) the destructor of a gloo group never returns, after the
    # script has ended. A program that hangs does so again.
    stuck = [run.program for run in runs.values() if run.ended_by == "waiting"]
    runs |= {run.program.path: run for run in execute(stuck, python, start="fresh", confirm=False)}
    return {path: judge(headers[path], _observed(run)) for path, run in runs.items()}


def _as_benchmark(program: Path, header: ProofHeader) -> Program:
    declared = header.expectations[0]
    shows = Shows("fine")
    if isinstance(declared, ExpectedException):
        # A rank that only lost its peer may end first.
        shows = Shows("error", r"\s+".join(map(re.escape, declared.text.split())))
    return Program(
        path=program,
        sentence=header.sentence,
        source="",
        bug="",
        ranks=header.ranks,
        expect=None,
        file=None,
        row=None,
        line="",
        decidable=True,
        reason="",
        shows=shows,
    )


def _observed(run: execution.Execution) -> Execution:
    failed = [rank.exit for rank in run.ranks if rank.exit]
    return Execution(
        command=(),
        exit_status=failed[0] if failed else 0,
        timed_out=run.ended_by in ("waiting", "limit"),
        output="\n".join(rank.out + rank.err for rank in run.ranks),
        exceptions=tuple(
            exception
            for number, rank in enumerate(run.ranks)
            if rank.exit
            for exception in _uncaught(number, rank.err, run.program.path.parent)
        ),
        seconds=run.seconds,
    )


def _uncaught(rank: int, written: str, folder: Path) -> list[ObservedException]:
    """The last traceback of a rank that failed."""
    return [
        ObservedException(
            rank,
            raised.type,
            raised.message,
            tuple(
                replace(frame, in_user_code=Path(frame.filename).parent == folder)
                for frame in raised.frames
            ),
        )
        for raised in parse_tracebacks(_MARK.sub("", written))[-1:]
    ]
