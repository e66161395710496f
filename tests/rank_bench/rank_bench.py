"""The rank-safety benchmark: what ranksafe and other tools find in programs that go wrong on several ranks.

    make rank-bench
    python -m tests.rank_bench.rank_bench [--programs FOLDER] [--execute] [--peers] [--json FILE]

docs/rank-bench.md says what is measured and how to add a case.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.compared_tools import ToolMissing
from tests.rank_bench import execute, peers
from tests.rank_bench.execution import Execution, print_execution
from tests.rank_bench.header import PROGRAMS, HeaderError, Pair, Program, read_idioms, read_pairs
from tests.rank_bench.lint import (
    LINE_ONLY,
    STRICT,
    Message,
    NotLinted,
    Score,
    lint,
    rules_exist,
    score_pairs,
)

NO_RULES = "no rule RS4xx is registered: nothing can be found, and the scores below say only that"


@dataclass
class Results:
    """All that one call measured."""

    pairs: list[Pair]
    idioms: list[Program]
    """Programs that look wrong and are right, each alone."""
    scores: dict[str, list[Score]] = field(default_factory=dict)
    """By tool."""
    on_idioms: dict[str, dict[str, list[Message]]] = field(default_factory=dict)
    """What was said of the idioms, by tool and program."""
    executions: list[Execution] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    """Tools that could not be had, and why."""

    def as_json(self) -> dict[str, Any]:
        ran = {execution.program.name: execution.as_json() for execution in self.executions}
        scores = {
            tool: {score.pair.name: score.as_json() for score in scores}
            for tool, scores in self.scores.items()
        }
        return {
            "programs": [
                {
                    "name": pair.name,
                    "bug": pair.incorrect.bug,
                    "source": pair.incorrect.source,
                    "ranks": pair.incorrect.ranks,
                    "decidable": pair.incorrect.decidable,
                    "reason": pair.incorrect.reason,
                    "shows": f"{pair.incorrect.shows.kind} {pair.incorrect.shows.pattern}".strip(),
                    "row": pair.incorrect.row,
                    "executed": {
                        variant.variant: ran[variant.name]
                        for variant in (pair.incorrect, pair.corrected)
                        if variant.name in ran
                    },
                    "tools": {tool: by_pair[pair.name] for tool, by_pair in scores.items()},
                }
                for pair in self.pairs
            ],
            "idioms": [
                {
                    "name": program.name,
                    "source": program.source,
                    "executed": ran.get(program.name),
                    "noise": {
                        tool: [message.as_json() for message in found[program.name]]
                        for tool, found in self.on_idioms.items()
                    },
                }
                for program in self.idioms
            ],
            "missing": self.missing,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    pairs: int
    decidable: int
    strict: int
    """Of the decidable ones."""
    strict_of_all: int
    line_only: int
    noise: int
    """Findings on other lines of incorrect programs."""
    noise_on_twins: int

    @property
    def share(self) -> float:
        """Strict true positives of the decidable cases; 1.0 where there are none."""
        return self.strict / self.decidable if self.decidable else 1.0

    @property
    def recall(self) -> float:
        """Strict true positives of all cases."""
        return self.strict_of_all / self.pairs if self.pairs else 1.0


def summarize(name: str, scores: Sequence[Score]) -> Row:
    """The numbers of some scores."""
    decidable = [score for score in scores if score.pair.incorrect.decidable]
    return Row(
        name=name,
        pairs=len(scores),
        decidable=len(decidable),
        strict=sum(score.outcome == STRICT for score in decidable),
        strict_of_all=sum(score.outcome == STRICT for score in scores),
        line_only=sum(score.outcome == LINE_ONLY for score in scores),
        noise=sum(len(score.noise) for score in scores),
        noise_on_twins=sum(len(score.noise_on_twin) for score in scores),
    )


def rows_by_rule(scores: Sequence[Score]) -> list[Row]:
    """A row for each kind of bug, and the total."""
    codes = sorted({score.pair.incorrect.bug for score in scores})
    rows = [
        summarize(code, [score for score in scores if score.pair.incorrect.bug == code])
        for code in codes
    ]
    return [*rows, summarize("all", scores)]


def table(first: str, rows: Sequence[Row]) -> str:
    """A Markdown table."""
    head = f"| {first} | pairs | decidable | strict TP | recall of all | right line only | missed | noise | noise on twins |"
    lines = [head, "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        missed = row.pairs - row.strict_of_all - row.line_only
        strict = f"{row.strict} ({row.share:.0%})"
        cells = (row.name, row.pairs, row.decidable, strict, f"{row.recall:.0%}", row.line_only)
        lines.append(
            f"| {' | '.join(map(str, cells))} | {missed} | {row.noise} | {row.noise_on_twins} |"
        )
    return "\n".join(lines)


def measure(arguments: argparse.Namespace) -> Results:
    """All that was asked for. Raises HeaderError and NotLinted."""

    def is_wanted(item: Pair | Program) -> bool:
        return not arguments.only or any(word in item.name for word in arguments.only)

    pairs = list(filter(is_wanted, read_pairs(arguments.programs)))
    idioms = list(filter(is_wanted, read_idioms(arguments.programs)))
    results = Results(pairs, idioms)
    say(f"{len(pairs)} pairs, {len(idioms)} idioms: ranksafe check")
    results.scores["ranksafe"] = score_pairs(pairs)
    results.on_idioms["ranksafe"] = lint(idioms)
    named = dict(word.split("=", 1) for word in arguments.peer)
    for name in peers.READERS if arguments.peers or named else ():
        if not named or name in named:
            measure_peer(results, name, named.get(name))
    if arguments.execute:
        run_programs(results, arguments)
    return results


def measure_peer(results: Results, name: str, program: str | None) -> None:
    say(name)
    try:
        found = program or peers.FINDERS[name]()
        scores, on_idioms = peers.score_with(name, found, results.pairs, results.idioms)
        results.scores[name], results.on_idioms[name] = scores, on_idioms
    except ToolMissing as error:
        results.missing[name] = str(error)
        say(f"{name} is left out: {error}")


def run_programs(results: Results, arguments: argparse.Namespace) -> None:
    programs = [program for pair in results.pairs for program in (pair.incorrect, pair.corrected)]
    programs += results.idioms
    python = execute.chosen_python(arguments.python)
    say(f"running {len(programs)} programs")
    for execution in execute.execute(
        programs, python, explain=arguments.explain, at_once=arguments.at_once
    ):
        results.executions.append(execution)
        if not execution.holds:
            print_execution(execution)


def print_results(results: Results) -> None:
    if not rules_exist():
        print(f"\n{NO_RULES}")
    ours = results.scores["ranksafe"]
    print(f"\n{table('ranksafe', rows_by_rule(ours))}")
    for score in ours:
        program = score.pair.incorrect
        if score.outcome != STRICT:
            why = "" if program.decidable else f" (not decidable: {program.reason})"
            print(f"{score.outcome}: {score.pair.name} {program.expect} line {program.row}{why}")
        for message in (*score.noise, *score.noise_on_twin):
            print(f"noise: {score.pair.name} {message.file}:{message.row} {message.code}")
    for name, messages in results.on_idioms["ranksafe"].items():
        for message in messages:
            print(f"noise: {name} {message.file}:{message.row} {message.code}")
    for tool, found in results.on_idioms.items():
        print(f"noise of {tool} on {len(results.idioms)} idioms: {sum(map(len, found.values()))}")
    if len(results.scores) > 1:
        rows = [summarize(tool, scores) for tool, scores in results.scores.items()]
        print(f"\n{table('tool', rows)}")
    for tool, reason in results.missing.items():
        print(f"{tool} was left out: {reason}")
    if results.executions:
        holding = sum(execution.holds for execution in results.executions)
        print(f"\nexecuted: {holding} of {len(results.executions)} claims hold")


def say(text: str) -> None:
    print(f"==> {text}", file=sys.stderr, flush=True)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, default=PROGRAMS, help="a folder of pairs")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="pairs whose name has it"
    )
    parser.add_argument("--execute", action="store_true", help="run the programs, too")
    parser.add_argument("--explain", action="store_true", help="run those that hang with DETAIL")
    parser.add_argument("--python", type=Path, help="the interpreter with torch")
    parser.add_argument("--at-once", type=int, default=execute.AT_ONCE, help="programs at a time")
    parser.add_argument("--peers", action="store_true", help="TorchFix, ruff and pylint, too")
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME=PROGRAM", help="that peer, found there"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    arguments = parser.parse_args(words)
    for word in arguments.peer:
        if word.partition("=")[0] not in peers.READERS or "=" not in word:
            parser.error(f"--peer takes {' | '.join(peers.READERS)} = PROGRAM, not {word}")
    try:
        results = measure(arguments)
    except (HeaderError, NotLinted) as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.json:
        text = json.dumps(results.as_json(), indent=1, ensure_ascii=False)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    print_results(results)
    return 0 if all(execution.holds for execution in results.executions) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
