"""Mutants of real training code: one collective that all ranks reach becomes one that some ranks miss.

    python -m tests.rank_bench.mutants FOLDER [FOLDER ...] [--count 200] [--seed 4] [--lint] [--write FOLDER]

A collective call or a DistributedDataParallel backward inside a function gets a rank guard around it, or a rank-local
early exit before it. The same folders, seed and count give the same mutants. ``--lint`` scores them with the originals:
every finding there is one too many.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rank_bench.lint import Message
from tests.rank_bench.mutant_places import CONTINUE, GUARD, RETURN, Place, find_places
from tests.rank_bench.rank_bench import say

COUNT, SEED = 200, 4
SHARES = {GUARD: 0.5, RETURN: 0.25, CONTINUE: 0.25}
"""Of the kinds; where there are too few places for one, the others fill up."""
_LEFT_OUT = re.compile(r"(^|/)(tests?|build|\.[^/]*)/")
_MENTIONS = re.compile(r"torch\.distributed|accelerat|from torch import distributed")
_LARGEST = 400_000


@dataclass(frozen=True, slots=True)
class Source:
    """A file of real code. Its name is relative to the folder above the one that was named."""

    base: Path
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Expected:
    """A finding that counts as right."""

    codes: tuple[str, ...]
    rows: range


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one change, and what has to be found in it."""

    source: Source
    place: Place
    kind: str
    text: str
    change: str
    """The line that was put in."""
    expected: tuple[Expected, ...]

    def is_found_by(self, message: Message) -> bool:
        """Whether a finding is right: code and line."""
        return any(
            message.code in expected.codes and message.row in expected.rows
            for expected in self.expected
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.source.name,
            "function": self.place.function,
            "row": self.expected[0].rows.start,
            "codes": list(self.expected[0].codes),
            "kind": self.kind,
            "collective": self.place.collective,
            "change": self.change,
            "trait": self.place.trait,
        }


def read_sources(folders: Sequence[Path]) -> list[Source]:
    """The Python files below the folders that may hold collectives; tests and copies are left out."""
    sources = []
    texts: set[str] = set()
    for folder in folders:
        base = folder.resolve().parent
        for file in sorted(folder.resolve().rglob("*.py")):
            inside = file.relative_to(folder.resolve()).as_posix()
            if not _LEFT_OUT.search(inside) and file.stat().st_size <= _LARGEST:
                text = file.read_text(encoding="utf-8", errors="replace")
                if _MENTIONS.search(text) and "\r" not in text and text not in texts:
                    texts.add(text)
                    sources.append(Source(base, file.relative_to(base).as_posix(), text))
    return sources


def make_mutants(
    sources: Sequence[Source], *, count: int = COUNT, seed: int = SEED
) -> list[Mutant]:
    """Spread over the files: a file gives its second mutant when every file has given one."""
    by_file = [(source, find_places(source.text)) for source in sources]
    generator = random.Random(seed)
    generator.shuffle(by_file)
    pools: dict[str, list[tuple[Source, Place]]] = {}
    for kind in SHARES:
        queues = [
            (source, generator.sample(fitting, len(fitting)))
            for source, places in by_file
            if (fitting := [place for place in places if kind in place.kinds])
        ]
        longest = max((len(places) for _, places in queues), default=0)
        pools[kind] = [
            (source, places[turn])
            for turn in range(longest)
            for source, places in queues
            if turn < len(places)
        ]
    return _choose(pools, count)


def _choose(pools: dict[str, list[tuple[Source, Place]]], count: int) -> list[Mutant]:
    wanted = {kind: round(share * count) for kind, share in SHARES.items()}
    chosen: list[Mutant] = []
    taken: set[str] = set()
    made: Counter[str] = Counter()
    for limits in (wanted, dict.fromkeys(SHARES, count)):
        for kind in sorted(pools, key=lambda kind: len(pools[kind])):
            for source, place in pools[kind]:
                key = f"{place.function_source} {place.collective} {place.row - place.function_row}"
                identity = hashlib.sha256(key.encode()).hexdigest()
                if len(chosen) >= count or made[kind] >= limits[kind] or identity in taken:
                    continue
                mutant = mutate(source, place, kind)
                if mutant is not None:
                    taken.add(identity)
                    made[kind] += 1
                    chosen.append(mutant)
    return sorted(chosen, key=lambda mutant: (mutant.source.name, mutant.place.row, mutant.kind))


def mutate(source: Source, place: Place, kind: str) -> Mutant | None:
    """The file with one change; None if it would not parse any more."""
    lines = source.text.split("\n")
    first, last = place.row - 1, place.end_row
    statement = lines[first:last]
    rows = range(place.row, place.end_row + 1)
    codes = ("RS401", "RS403") if place.is_backward else ("RS401",)
    if kind == GUARD:
        change = [f"{place.indent}if {place.is_main}:"]
        statement = [f"    {line}" if line.strip() else line for line in statement]
        expected = (Expected(codes, _moved(rows, 1)),)
    else:
        if kind == RETURN:
            change = [f"{place.indent}if not ({place.is_main}):", f"{place.indent}    return"]
        else:
            condition = f"{place.loss}.item() > 10"
            change = [f"{place.indent}if {condition}:", f"{place.indent}    continue"]
        at_exit = Expected(("RS404",), range(place.row + 1, place.row + 2))
        at_collective = Expected(codes, _moved(rows, 2))
        if kind == CONTINUE:
            expected = (at_exit, at_collective)
        else:
            expected = (at_collective, at_exit) if place.in_loop else (at_collective,)
    text = "\n".join([*lines[:first], *change, *statement, *lines[last:]])
    try:
        ast.parse(text)
    except SyntaxError:
        return None
    return Mutant(source, place, kind, text, change[0].strip(), expected)


def _moved(rows: range, by: int) -> range:
    return range(rows.start + by, rows.stop + by)


def write(mutants: Sequence[Mutant], folder: Path) -> None:
    """Every mutant beside its original, and a line of JSON for each."""
    for number, mutant in enumerate(mutants):
        for kind, text in (("original", mutant.source.text), ("mutant", mutant.text)):
            file = folder / f"{number:03}" / kind / Path(mutant.source.name).name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    lines = [json.dumps({"number": number, **one.as_json()}) for number, one in enumerate(mutants)]
    (folder / "mutants.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders of real Python sources")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--lint", action="store_true", help="score mutants and originals")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the mutants there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    arguments = parser.parse_args(words)
    sources = read_sources(arguments.folders)
    mutants = make_mutants(sources, count=arguments.count, seed=arguments.seed)
    files = len({mutant.source.name for mutant in mutants})
    kinds = Counter(mutant.kind for mutant in mutants)
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    say(f"{len(mutants)} mutants ({counted}) of {files} files; {len(sources)} files read")
    if arguments.write:
        write(mutants, arguments.write)
    if arguments.lint:
        from tests.rank_bench.mutant_scores import as_json, print_results, score

        results = score(mutants, sources)
        print_results(results)
        if arguments.json:
            arguments.json.write_text(json.dumps(as_json(results), indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
