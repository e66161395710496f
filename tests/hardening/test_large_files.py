"""Promise: checking a file takes work in proportion to its size, up to a size above which it is said to be left out."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from ranksafe.checker.analysis import WHOLE, Analyzer, DocumentAnalysis
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import REST

from tests.hardening.measured import MIB, ranksafe, sampled
from tests.hardening.shapes import FOUND, HEAD, SHAPES, text_of
from tests.rules.case_file import read_cases
from tests.rules.conftest import REGISTRY

SMALL, TIMES = 150, 4
SAMPLE = {"ignore comments", "methods", "save"}
WITH_CASES = [folder for folder in REGISTRY.rules if folder.cases_path.is_file()]
FUNCTION = re.compile(r"^( *)(?:async )?def .*:\n", re.MULTILINE)
_LINEAR_WITHIN = 1.6
"""Times the growth of the text: sorting, and what is found out once per pair of neighbours."""


@cache
def analyzer() -> Analyzer:
    return Analyzer(Registry.load(entry_points=False), Configuration(), LaunchContext())


def analysed(text: str) -> DocumentAnalysis:
    return analyzer().open(None, text)


@contextmanager
def counted() -> Iterator[list[int]]:
    """Counts calls, also of generators and of functions written in C."""
    count = [0]

    def event(*_of: object) -> None:
        count[0] += 1

    sys.setprofile(event)
    try:
        yield count
    finally:
        sys.setprofile(None)


def work(text: str) -> int:
    with counted() as count:
        assert analysed(text).findings
    return count[0]


@pytest.mark.parametrize("shape", sampled(SHAPES, SAMPLE))
def test_work_is_in_proportion_to_size(shape: str) -> None:
    work(text_of(shape, SMALL))
    empty = work(HEAD + FOUND)
    small, large = (work(text_of(shape, count)) - empty for count in (SMALL, SMALL * TIMES))
    growth = len(text_of(shape, SMALL * TIMES)) / len(text_of(shape, SMALL))
    assert large < max(small, empty) * max(growth, TIMES) * _LINEAR_WITHIN


@pytest.mark.parametrize("shape", sampled(SHAPES, SAMPLE))
def test_no_shape_takes_a_rule_or_a_finding_away(shape: str) -> None:
    """Nor is there a depth at which Python gives up: 3,000 of everything."""
    found = analysed(HEAD + FOUND + SHAPES[shape](3_000))
    assert found.rule_errors == {}
    assert "RS401" in [finding.code for finding in found.findings]


@pytest.mark.parametrize("folder", WITH_CASES, ids=lambda folder: folder.metadata.code)
def test_what_is_nested_in_a_function_takes_no_rule_away(folder: RuleFolder) -> None:
    for case in read_cases(folder.cases_path)[:3]:
        text = FUNCTION.sub(rf"\g<0>\1    deep: {'lambda: ' * 500}0 = 0\n", case.sources[0].text)
        assert analysed(text).rule_errors == {}


TOO_LARGE = {
    "lines": "x = 1\n" * 25_000,
    "characters": f"x = {'1' * 100_000}\n" * 16,
    "statement": SHAPES["one list of calls"](20_000),
    "statement of lines": "d = [\n" + "    f(1),\n" * 20_000 + "]\n",
}


@pytest.mark.parametrize("size", TOO_LARGE)
def test_what_is_too_large_is_said_to_be(size: str) -> None:
    body = TOO_LARGE[size]
    document = analysed(HEAD + body + FOUND)
    assert (document.findings, document.given_up) == ((), (WHOLE,))
    assert analysed(body).given_up == (), "no finding could have been in it"
    # Edited until it is small enough, and back: as if it had been opened so.
    last = len(document.source.lines) - 1
    document.change(HEAD + FOUND, 0, last)
    document.settle()
    assert document.findings == analysed(HEAD + FOUND).findings != ()
    document.change(HEAD + body + FOUND, 0, len(document.source.lines) - 1)
    document.settle()
    assert (document.findings, document.given_up) == ((), (WHOLE,))


def test_the_command_line_tells_all_findings(tmp_path: Path) -> None:
    """An editor shows the first 1,000."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(text_of("ignore comments", 1_200))
    done = ranksafe("check", "--no-cache", "--gpus=2", "train.py", folder=folder)
    assert (done.out.count("[RS001]"), done.out.count("warning[RS401]")) == (1_200, 1)


def test_functions_are_followed_up_to_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever results were kept: edits before, behind and at the limit give what a fresh analysis does."""
    monkeypatch.setattr("ranksafe.rank_flow.analysis._MOST_EVALUATIONS", 6_000)
    each = SHAPES["functions that ask for the rank"]
    whole = HEAD + each(120) + FOUND
    document = analysed(whole)
    assert REST in document.given_up
    assert not any(finding.code == "RS401" for finding in document.findings)
    choose = random.Random(5)
    lines = whole.splitlines(keepends=True)
    for _ in range(60):
        at = choose.randrange(5, len(lines) - 6)
        with_print = choose.random() < 0.5
        new = ["    print(a)\n"] if with_print else []
        old = lines[at : at + 1]
        if not old or not old[0].startswith("    "):
            continue
        lines[at : at + 1] = [*old, *new]
        document.change("".join(lines), at, at)
        document.settle()
        fresh = analysed("".join(lines))
        assert document.findings == fresh.findings
        assert document.given_up == fresh.given_up
    document.change(HEAD + FOUND, 0, len(lines))
    document.settle()
    assert document.given_up == ()


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_a_file_at_the_limit(tmp_path: Path, shape: str) -> None:
    """As large as is checked: its memory and work are bounded by those of plain lines of the same number."""
    folder = tmp_path / "project"
    folder.mkdir()
    each = max(1, text_of(shape, 100).count("\n") // 100)
    (folder / "train.py").write_text(text_of(shape, 24_000 // each))
    done = ranksafe("check", "--no-cache", "--gpus=2", "train.py", folder=folder)
    assert "Traceback" not in done.error
    assert done.status in (0, 1)
    assert done.peak < 900 * MIB


RINGS = {
    "named": "from m{next} import f{next}\n",
    "star": "from m{next} import *\n",
    "classes": "from m{next} import f{next}, C{next}\nclass C{n}(C{next}):\n    pass\n",
}


@pytest.mark.parametrize("ring", sampled(RINGS, {"classes"}))
def test_modules_that_import_each_other_in_a_ring(tmp_path: Path, ring: str) -> None:
    """As many as Python lets no function call itself."""
    folder = tmp_path / "project"
    folder.mkdir()
    count = 1_500
    for n in range(count):
        text = HEAD + RINGS[ring] + "def f{n}(a):\n    f{next}(a)\n    dist.all_reduce(a)\n"
        found = FOUND if n == 0 else ""
        (folder / f"m{n}.py").write_text(text.format(n=n, next=(n + 1) % count) + found)
    done = ranksafe("check", "--no-cache", "--gpus=2", "m0.py", folder=folder)
    assert (done.error, done.status) == ("", 1)
    assert "RS401" in done.out
