"""The benchmark itself: what headers claim is what happens, and ranksafe finds it without noise.

A core of the programs is executed in the gate, all of them with the long tests.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rank_bench.execute import execute
from tests.rank_bench.execution import Execution
from tests.rank_bench.header import (
    Pair,
    Program,
    Shows,
    read_idioms,
    read_pair,
    read_pairs,
)
from tests.rank_bench.lint import (
    LINE_ONLY,
    MISSED,
    STRICT,
    Message,
    judge,
    lint,
    rules_exist,
    score_pairs,
)
from tests.rank_bench.mutant_places import CONTINUE, GUARD, RETURN, find_places
from tests.rank_bench.mutant_scores import score
from tests.rank_bench.mutants import Source, make_mutants, mutate
from tests.rank_bench.peers import concerns_ranks
from tests.rank_bench.rank_bench import NO_RULES

CORE = 8
"""Pairs that the gate executes, each of another kind."""


@pytest.fixture(scope="module")
def torch_python() -> Path:
    chosen = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if not chosen:
        pytest.skip("needs torch: RANKSAFE_TEST_TORCH_PYTHON=$(python tools/environments.py torch)")
    return Path(chosen)


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return read_pairs()


def core(pairs: list[Pair]) -> list[Pair]:
    """One pair for each kind of bug, as far as `CORE` goes."""
    first = {pair.incorrect.bug: pair for pair in reversed(pairs)}
    return [first[code] for code in sorted(first)][:CORE]


def both(pairs: list[Pair]) -> list[Program]:
    return [program for pair in pairs for program in (pair.incorrect, pair.corrected)]


def wrong_claims(programs: list[Program], python: Path) -> list[str]:
    return [
        f"{execution.program.name}: {execution.program.shows} | {execution.seen}"
        for execution in execute(programs, python)
        if not execution.holds
    ]


@pytest.mark.torch
def test_claims_of_the_core_hold(pairs: list[Pair], torch_python: Path) -> None:
    assert not wrong_claims(both(core(pairs)), torch_python)


@pytest.mark.torch
@pytest.mark.long
def test_all_claims_hold(pairs: list[Pair], torch_python: Path) -> None:
    assert not wrong_claims([*both(pairs), *read_idioms()], torch_python)


def test_nothing_is_said_that_is_not_so(pairs: list[Pair]) -> None:
    if not rules_exist():
        pytest.skip(NO_RULES)
    scores = score_pairs(pairs)
    noise = [
        f"{score.pair.name}: {message}"
        for score in scores
        for message in (*score.noise, *score.noise_on_twin)
    ]
    assert not noise
    assert not {name: found for name, found in lint(read_idioms()).items() if found}


def message(code: str, row: int, file: str = "incorrect.py") -> Message:
    return Message(code, file, row, "text")


def test_judging(pairs: list[Pair]) -> None:
    pair = next(pair for pair in pairs if pair.incorrect.file == pair.incorrect.path)
    code, row = pair.incorrect.bug, pair.incorrect.row or 0
    assert judge(pair, [message(code, row)], []).outcome == STRICT
    assert judge(pair, [message("RS499", row)], []).outcome == LINE_ONLY
    assert judge(pair, [message(code, row + 1)], []).outcome == MISSED
    score = judge(pair, [message(code, row), message(code, row + 1)], [message(code, 3)])
    assert (score.outcome, len(score.noise), len(score.noise_on_twin)) == (STRICT, 1, 1)
    assert judge(pair, [message(code, row, "helper.py")], []).outcome == MISSED


def test_words_about_ranks() -> None:
    assert concerns_ranks(Message("X", "a.py", 1, "not every rank reaches this barrier"))
    assert not concerns_ranks(Message("X", "a.py", 1, "undefined name `barrier`"))


TIMEOUT = 'timedelta(seconds=float(os.environ["RANK_BENCH_TIMEOUT"]))'
HEAD = f"""
import os, sys, time
from datetime import timedelta
import torch, torch.distributed as dist
dist.init_process_group("gloo", timeout={TIMEOUT})
rank = dist.get_rank()
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("body", "shows", "seen"),
    [
        ("dist.barrier()", Shows("fine"), "exit status 0"),
        pytest.param(
            "if rank == 0:\n    dist.barrier()\nelse:\n    time.sleep(30)",
            Shows("hang"),
            "hang (timed out)",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "if rank == 0:\n    time.sleep(60)",
            Shows("hang"),
            "hang (still waiting)",
            marks=pytest.mark.long,
        ),
        (
            "if rank == 0:\n    raise ValueError('only here')",
            Shows("error", "only here"),
            "error: ",
        ),
        ("print(f'got {rank + 1}')", Shows("silent", "^got 2$"), "exit status 0"),
        (
            "class Late:\n    def __del__(self):\n        print('at the end')\nlate = Late()",
            Shows("silent", "at the end"),
            "exit status 0",
        ),
    ],
)
def test_every_claim_can_be_seen(
    tmp_path: Path, torch_python: Path, body: str, shows: Shows, seen: str
) -> None:
    program = small_program(tmp_path, body, shows)
    (execution,) = execute([program], torch_python, confirm=False)
    assert execution.holds, execution.seen
    assert execution.seen.startswith(seen)
    for kind in {"hang", "error", "silent", "fine"} - {shows.kind}:
        other = replace(program, shows=Shows(kind, "nothing like it"))
        judged = Execution(other, execution.ranks, execution.ended_by, 0.0, "fork")
        assert judged.holds == (kind == "fine" and shows.kind == "silent")


def small_program(folder: Path, body: str, shows: Shows) -> Program:
    path = folder / "area" / "pair" / "incorrect.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + body + "\n", encoding="utf-8")
    return Program(path, "", "", "RS401", 2, "RS401", path, 1, "", True, "", shows)


TRAINING = '''
import torch.distributed as dist

def evaluate(self, batch):
    if dist.get_rank() == 0:
        dist.barrier()
    """A string."""
    for part in batch:
        loss = self.model(part)
        self.accelerator.backward(
            loss
        )
    dist.all_reduce(batch, group=self.group)
    return dist.get_rank()
'''


def test_mutants_are_made_where_every_rank_comes_by() -> None:
    (place,) = find_places(TRAINING)
    assert (place.row, place.end_row, place.collective) == (10, 12, "self.accelerator.backward")
    assert place.kinds == [GUARD, RETURN, CONTINUE]


@pytest.mark.parametrize(
    ("kind", "changed", "right"),
    [
        (GUARD, "        if self.accelerator.is_main_process:", [("RS401", 11), ("RS403", 13)]),
        (
            RETURN,
            "        if not (self.accelerator.is_main_process):",
            [("RS401", 12), ("RS404", 11)],
        ),
        (CONTINUE, "        if loss.item() > 10:", [("RS404", 11), ("RS403", 12)]),
    ],
)
def test_mutating(kind: str, changed: str, right: list[tuple[str, int]]) -> None:
    source = Source(Path("/"), "a.py", TRAINING)
    mutant = mutate(source, find_places(TRAINING)[0], kind)
    assert mutant is not None
    assert mutant.text.splitlines()[9] == changed
    assert all(mutant.is_found_by(message(code, row)) for code, row in right)
    assert not mutant.is_found_by(message("RS401", 10))


def test_mutants_are_scored_where_their_originals_stand(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text(TRAINING, encoding="utf-8")
    source = Source(tmp_path, "code/a.py", TRAINING)
    place = find_places(TRAINING)[0]
    mutants = [mutate(source, place, kind) for kind in (GUARD, RETURN)]
    results = score([mutant for mutant in mutants if mutant is not None], [source])
    assert [one.found for one in results.judged] == [True, True]


def test_mutants_depend_on_the_seed_alone() -> None:
    text = TRAINING + "\n\ndef wait():\n    dist.barrier()\n"
    sources = [Source(Path("/"), "a.py", text), Source(Path("/"), "b.py", text + "\n#")]
    made = [make_mutants(sources, count=4, seed=1) for _ in range(2)]
    assert made[0] == made[1]
    assert len({mutant.text for mutant in made[0]}) == 2  # the second file is a copy


def test_the_core_has_several_kinds(pairs: list[Pair]) -> None:
    assert len({pair.incorrect.bug for pair in core(pairs)}) == CORE


def test_reading_a_single_pair(pairs: list[Pair]) -> None:
    assert read_pair(pairs[0].incorrect.path.parent) == pairs[0]
