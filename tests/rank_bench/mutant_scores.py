"""Scores mutants and their originals: how many are found, what is missed, and what should not have been said."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.checker.registry import Registry
from ranksafe.cli.checker import Checker, context_of, is_relevant
from ranksafe.cli.options import add_analysis_arguments, read_analysis_options
from ranksafe.cli.reading import SourceFile

from tests.rank_bench.lint import AREA, Message, rules_exist
from tests.rank_bench.mutants import Mutant, Source
from tests.rank_bench.rank_bench import NO_RULES


@dataclass(frozen=True, slots=True)
class Judged:
    """A mutant and what was said of it."""

    mutant: Mutant
    found: bool
    elsewhere: tuple[Message, ...]
    """Findings that the original does not have, on other lines."""


@dataclass
class Results:
    """How mutants were judged, and the findings on originals, by file."""

    judged: list[Judged]
    originals: dict[Source, list[Message]]

    @property
    def recall(self) -> float:
        """The share of mutants that were found."""
        return sum(one.found for one in self.judged) / max(1, len(self.judged))


def score(mutants: Sequence[Mutant], sources: Sequence[Source]) -> Results:
    """Check every mutant where its original stands, among the other files of its folder; and every original."""
    with tempfile.TemporaryDirectory(prefix="ranksafe-rank-bench-") as name:
        linter = _Linter(Path(name).resolve(), sources)
        originals = {source: linter.check(source, source.text) for source in sources}
        judged = []
        for mutant in mutants:
            before = Counter((message.code, message.text) for message in originals[mutant.source])
            messages = linter.check(mutant.source, mutant.text)
            right = [message for message in messages if mutant.is_found_by(message)]
            others = []
            for message in messages:
                key = (message.code, message.text)
                if message in right:
                    continue
                if before[key]:
                    before[key] -= 1
                else:
                    others.append(message)
            judged.append(Judged(mutant, bool(right), tuple(others)))
    return Results(judged, {source: found for source, found in originals.items() if found})


class _Linter:
    """Copies of the folders, since ranksafe leaves out site-packages and reads configurations above a file."""

    def __init__(self, scratch: Path, sources: Sequence[Source]) -> None:
        bases = sorted({(source.base, source.name.split("/")[0]) for source in sources})
        self.roots = {pair: scratch / str(number) for number, pair in enumerate(bases)}
        for (base, top), root in self.roots.items():
            for file in sorted((base / top).rglob("*.py")):
                target = root / file.relative_to(base)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
            (root / "ranksafe.toml").write_text(f'select = ["{AREA}"]\n', encoding="utf-8")
        parser = argparse.ArgumentParser()
        add_analysis_arguments(parser, "en")
        words = ["--preview", "--gpus", "2", "--launcher", "torchrun", str(scratch)]
        self.options = read_analysis_options(parser.parse_args(words))
        self.checker = Checker(Registry.load(), with_edits=False)

    def check(self, source: Source, text: str) -> list[Message]:
        """The findings of the area in a text that stands in the source's place."""
        path = self.roots[(source.base, source.name.split("/")[0])] / source.name
        if not is_relevant(path, text.encode()):
            return []
        result = self.checker.check_source(
            SourceFile(path, text, "utf-8"), context_of(path, self.options)
        )
        return [
            Message(
                item.finding.code,
                source.name,
                item.finding.range.start.line + 1,
                item.finding.message.en,
            )
            for item in result.reported
            if item.finding.code.startswith(AREA)
        ]


def print_results(results: Results) -> None:
    if not rules_exist():
        print(f"\n{NO_RULES}")
    found = sum(one.found for one in results.judged)
    print(f"\nmutants found: {found} of {len(results.judged)} ({results.recall:.1%})")
    for title, key in (
        ("kind", lambda one: one.mutant.kind),
        ("place", lambda one: one.mutant.place.trait),
        ("collective", lambda one: one.mutant.place.collective.rpartition(".")[2]),
        ("source", lambda one: one.mutant.source.name.split("/")[0]),
    ):
        print(f"\n| {title} | mutants | found |\n|---|---|---|")
        for value in sorted({key(one) for one in results.judged}):
            members = [one for one in results.judged if key(one) == value]
            print(f"| {value} | {len(members)} | {sum(one.found for one in members)} |")
    print("\nmissed, by kind and place:")
    for line in _missed(results):
        print(line)
    for one in results.judged:
        for message in one.elsewhere:
            where = f"{message.file}:{message.row} {message.code}"
            print(f"elsewhere in a mutant (`{one.mutant.change}`): {where} {message.text}")
    count = sum(map(len, results.originals.values()))
    print(f"\nfindings on originals: {count}")
    for source, messages in results.originals.items():
        for message in messages:
            print(f"  {source.name}:{message.row} {message.code} {message.text}")


def _missed(results: Results) -> Iterator[str]:
    missed = [one.mutant for one in results.judged if not one.found]
    for cause in sorted({(mutant.kind, mutant.place.trait) for mutant in missed}):
        members = [mutant for mutant in missed if (mutant.kind, mutant.place.trait) == cause]
        yield f"  {cause[0]}, {cause[1]}: {len(members)}"
        for mutant in members:
            row = mutant.expected[0].rows.start
            yield f"    {mutant.source.name}:{row} {mutant.place.collective} after `{mutant.change}`"


def as_json(results: Results) -> dict[str, Any]:
    return {
        "recall": results.recall,
        "mutants": [
            {
                **one.mutant.as_json(),
                "found": one.found,
                "elsewhere": [message.as_json() for message in one.elsewhere],
            }
            for one in results.judged
        ],
        "originals": {
            source.name: [message.as_json() for message in messages]
            for source, messages in results.originals.items()
        },
    }
