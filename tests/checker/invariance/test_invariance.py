"""Neutral names and other ways to write the same change no finding: neither code, nor level, nor line.

What still changes is in `NOT_YET`. To see how:

    python -m tests.checker.invariance.test_invariance [RS401 ...]
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import Configuration
from ranksafe.launch.context import LaunchContext
from ranksafe.rank_flow.tables import named, table
from ranksafe.semantics.project.index import ProjectIndex

from tests.checker.invariance import rewriting
from tests.checker.invariance.changes import Change, Changed, Source, changed
from tests.checker.invariance.extraction import extracted_functions
from tests.checker.invariance.programs import (
    Program,
    benchmark_areas,
    benchmark_programs,
    case_programs,
    copy_libraries,
    library_files_with_findings,
)
from tests.checker.invariance.renaming import keywords_in, renamings
from tests.rules.conftest import REGISTRY

Findings = set[tuple[int, str, str]]

CONVENTIONS = frozenset(
    word for name in table("conventions")["conventions"] for word in named(name)
)
ENDINGS = tuple(named("loader ending") | named("sampler ending"))


_BATCH_SIZE = re.compile("batch|bsz|per_|micro")
"""RS304 speaks of batch sizes, which nothing but their names tells."""


def is_convention(name: str) -> bool:
    """Whether a name says what something is, so that another name may say something else."""
    return name in CONVENTIONS or name.endswith(ENDINGS) or _BATCH_SIZE.search(name) is not None


REWRITINGS: dict[str, Callable[[Source], list[Change]]] = {
    "named tests": rewriting.named_tests,
    "named arguments": rewriting.named_arguments,
    "whole parts written out": rewriting.whole_parts,
    "swapped arms": rewriting.swapped_arms,
    "keyword arguments": rewriting.keyword_arguments,
    "extracted functions": extracted_functions,
}
RENAMED = "neutral names"
EXTRACTED = "extracted functions"
NOT_YET = {
    **dict.fromkeys(
        [(f"RS{number}", EXTRACTED) for number in (101, 201, 210, 211, 301, 302, 303)],
        "rules on arguments and modules look into no function that makes them",
    ),
    **dict.fromkeys(
        [(f"RS{number}", EXTRACTED) for number in (501, 502, 505, 506, *range(510, 516))],
        "rules on overridden methods and replicas look at the method and what it calls on self",
    ),
    **dict.fromkeys(
        [(f"RS{number}", EXTRACTED) for number in (402, 404, 405, 406, 408, 409, 415, 535)],
        "what a function does to an argument of which nothing is known is not known to its caller",
    ),
    **dict.fromkeys(
        [(code, EXTRACTED) for code in ("RS111", "RS113", "RS220")],
        "what has run before is looked for in one function and in those that it calls, not in its callers",
    ),
    (
        "RS221",
        EXTRACTED,
    ): "the first use in a function is reported, and attributes of a parameter are not followed",
    **dict.fromkeys(
        [("RS317", EXTRACTED), ("RS534", EXTRACTED)],
        "what belongs to a backward is looked for in its loop and function, not in the callers of one that only goes "
        "backward",
    ),
    **dict.fromkeys(
        [("RS222", EXTRACTED), ("RS223", EXTRACTED)],
        "the devices of a variable are looked for in one function",
    ),
    (
        "RS114",
        EXTRACTED,
    ): "the methods of a dataset are looked into, functions that get the dataset are not",
    ("RS413", EXTRACTED): "who waits for a work is looked for in one function",
    (
        "RS403",
        EXTRACTED,
    ): "without gradients only the buffers count, which are looked for where the model is wrapped",
    ("RS413", "named arguments"): "a slice of a buffer that has a name of its own",
    (
        "RS414",
        EXTRACTED,
    ): "handlers and methods are looked into, the functions that they call are not",
    **dict.fromkeys(
        [(f"RS{number}", EXTRACTED) for number in (*range(310, 315), 316)],
        "a function that is handed self sets and reads attributes that are looked for in the class",
    ),
    **dict.fromkeys(
        [("RS602", EXTRACTED), ("RS701", EXTRACTED)],
        "who calls a method is seen on self, not on an object that a function is given",
    ),
    ("RS601", EXTRACTED): "what is loaded is followed within one function",
    **dict.fromkeys(
        [("RS604", EXTRACTED), ("RS702", EXTRACTED)],
        "what functions return is not looked into: a wrapper, a loader, what a loop adds up",
    ),
    **dict.fromkeys(
        [(f"RS{number}", EXTRACTED) for number in (*range(520, 529), 532, 536, 540)],
        "wrapped models are followed through parameters and returns, not what a function does to its arguments",
    ),
    ("RS533", EXTRACTED): "the uses of a layer are looked for in one method",
    ("RS530", EXTRACTED): "the backward and the step that it waits for are looked for in one loop",
    (
        "RS531",
        EXTRACTED,
    ): "layers are looked for in the constructor, and a function that gets the module may use them all",
    ("RS304", "whole parts written out"): "the rule speaks of the division itself",
    ("RS304", "named arguments"): "the division is looked for in the call that rounds it",
    ("RS512", "keyword arguments"): "the parameter is found by its place",
}
"""By rule and way to write: why findings change. A row that nothing needs any more has to go."""
NOT_YET_IN_PROGRAMS = {
    "RS410": "whether a step may fail depends on batches of a list that another function fills"
}
"""By rule: why findings in the benchmark are lost where functions are extracted, while its cases show nothing of it."""


def ways_of_cases() -> Iterator[object]:
    """Each rule with every way of rewriting; with two of the six, other ones for the next rule, in the short run."""
    kinds = list(REWRITINGS)
    for number, code in enumerate(folder.metadata.code for folder in REGISTRY.rules):
        at = number % 3
        yield pytest.param(code, kinds[at::3], id=code)
        others = [kind for kind in kinds if kind not in kinds[at::3]]
        yield pytest.param(code, others, id=f"{code}, the others", marks=pytest.mark.long)


@pytest.mark.parametrize("code", [folder.metadata.code for folder in REGISTRY.rules])
def test_cases(code: str, tmp_path: Path) -> None:
    assert not list(flips(case_programs(code), tmp_path))


@pytest.mark.parametrize("area", benchmark_areas())
def test_programs_of_the_benchmark(area: str, tmp_path: Path) -> None:
    assert not list(flips(benchmark_programs(area), tmp_path))


@pytest.mark.parametrize(("code", "kinds"), list(ways_of_cases()))
def test_cases_written_otherwise(code: str, kinds: list[str], tmp_path: Path) -> None:
    for number, kind in enumerate(kinds):
        found = list(flips(case_programs(code), tmp_path / f"{number}", [kind]))
        if (code, kind) in NOT_YET:
            assert found, f"{kind}: changes nothing any more"
        else:
            assert not found, kind


@pytest.mark.long
@pytest.mark.parametrize("area", benchmark_areas())
def test_programs_of_the_benchmark_written_otherwise(area: str, tmp_path: Path) -> None:
    not_yet = {*NOT_YET_IN_PROGRAMS, *(code for code, kind in NOT_YET if kind == EXTRACTED)}
    for number, kind in enumerate(REWRITINGS):
        for flip in flips(benchmark_programs(area), tmp_path / f"{number}", [kind]):
            assert kind == EXTRACTED, flip
            assert set(re.findall(r"RS\d{3}", flip)) <= not_yet, flip


@pytest.fixture(scope="module")
def training_libraries(tmp_path_factory: pytest.TempPathFactory) -> Project:
    chosen = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if not chosen:
        pytest.skip("needs torch: RANKSAFE_TEST_TORCH_PYTHON=$(python tools/environments.py torch)")
    folder = tmp_path_factory.mktemp("libraries")
    copy_libraries(Path(chosen), folder)
    return Project(folder, LaunchContext())


@pytest.mark.torch
@pytest.mark.parametrize("file", library_files_with_findings())
def test_files_of_libraries(file: str, training_libraries: Project) -> None:
    assert not list(training_libraries.flips(file))


def flips(
    programs: Iterable[Program], folder: Path, kinds: Iterable[str] = (RENAMED,)
) -> Iterator[str]:
    """What is found in programs as they were written and not when they are rewritten, or the other way round."""
    for number, program in enumerate(programs):
        place = folder / f"{number}"
        program.write(place)
        project = Project(place, program.launch)
        for file in program.files:
            yield from (f"{program.name}: {flip}" for flip in project.flips(file, kinds))


class Project:
    """A folder of files, any of which is analysed with another text."""

    def __init__(self, folder: Path, launch: LaunchContext) -> None:
        self._folder = folder
        project = ProjectIndex(folder)
        self._analyzer = Analyzer(REGISTRY, Configuration(preview=True), launch, project)

    def flips(self, file: str, kinds: Iterable[str] = (RENAMED,)) -> Iterator[str]:
        source = Source((self._folder / file).read_text(encoding="utf-8"))
        before = self._findings(file, changed(source, []))
        for kind in kinds:
            changes = self._changes(file, source, kind)
            if changes and (flip := self._flip(file, source, before, changes)):
                yield f"{file}, {kind}: {flip}"
                for change in changes:
                    if flip := self._flip(file, source, before, [change]):
                        yield f"    {change.what}: {flip}"

    def _flip(
        self, file: str, source: Source, before: Findings, changes: Sequence[Change]
    ) -> str | None:
        after = self._findings(file, changed(source, changes))
        first = {line: change.as_one.start for change in changes for line in change.as_one}
        before, after = (
            {(first.get(line, line), code, level) for line, code, level in found}
            for found in (before, after)
        )
        return None if before == after else differences(before, after)

    def _changes(self, file: str, source: Source, kind: str) -> list[Change]:
        if kind != RENAMED:
            return REWRITINGS[kind](source)
        others = [path for path in self._folder.rglob("*.py") if path != self._folder / file]
        elsewhere = frozenset(word for path in others for word in keywords_in(path))
        return renamings(source, elsewhere, is_convention)

    def _findings(self, file: str, text: Changed) -> Findings:
        ast.parse(text.text)
        analysis = self._analyzer.open(self._folder / file, text.text)
        assert not analysis.rule_errors, "\n".join(analysis.rule_errors.values())
        return {
            (text.origins[finding.range.start.line], finding.code, finding.level.label)
            for finding in analysis.findings
        }


def differences(before: Findings, after: Findings) -> str:
    lost = [
        f"{code} {level} of line {line} is lost" for line, code, level in sorted(before - after)
    ]
    new = [f"{code} {level} in line {line} is new" for line, code, level in sorted(after - before)]
    return ", ".join([*lost, *new])


def main(codes: list[str]) -> None:
    """Print what changes where the cases of rules are written otherwise."""
    for code in codes or [folder.metadata.code for folder in REGISTRY.rules]:
        for kind in REWRITINGS:
            with tempfile.TemporaryDirectory() as name:
                found = list(flips(case_programs(code), Path(name).resolve(), [kind]))
            print(
                f"{code}, {kind}: {sum(not flip.startswith(' ') for flip in found)}",
                *found,
                sep="\n  ",
            )


if __name__ == "__main__":
    main(sys.argv[1:])
