"""What a script's last rehearsal says of findings: that it met one of them, or ran past it without harm.

It holds for the text that was run, and for no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ranksafe.checker.finding import Finding
from ranksafe.localization import Translated
from ranksafe.lsp.targets import is_rehearsal, simulated_gpus

if TYPE_CHECKING:
    from ranksafe.runs.model import Failure, RunResult


@dataclass(frozen=True, slots=True)
class Testimony:
    """What one rehearsal says of the findings in one file. Lines are 0-based."""

    path: Path
    lines: list[str]
    """Of the file, as it ran; line ends differ between buffer and file in some editors."""
    gpus: int
    failed: Mapping[str, frozenset[int]]
    """By code of a rule: the lines of the failures that carry it, and of their callers."""
    harmless: frozenset[int]
    """What every rank executed in a rehearsal that passed."""

    def of(self, finding: Finding) -> Translated | None:
        """The sentence about a finding; None where the rehearsal says nothing of it."""
        place = finding.range
        lines = range(place.start.line, place.end.line + 1)
        own = [each for each in finding.related if each.path in (None, self.path)]
        told = [each.range.start.line for each in own]
        if not self.failed.get(finding.code, frozenset()).isdisjoint((*lines, *told)):
            return _CONFIRMED.filled(count=self.gpus)
        if not self.harmless.isdisjoint(lines):
            return _HARMLESS.filled(count=self.gpus)
        return None


@dataclass(slots=True)
class Testimonies:
    """Those of each script's last rehearsal, by file."""

    _by_script: dict[Path, Mapping[Path, Testimony]] = field(default_factory=dict)

    def replace(self, script: Path, testimony: Mapping[Path, Testimony]) -> None:
        """Put what a script's new run says in place of what its last one said."""
        self._by_script[script] = testimony

    def of(self, path: Path | None, text: str) -> list[Testimony]:
        """What holds for a file with this text."""
        found = [] if path is None else [each.get(path) for each in self._by_script.values()]
        known = [each for each in found if each is not None]
        if not known:
            return []
        lines = text.splitlines()
        return [each for each in known if each.lines == lines]


def testimony_of(result: RunResult) -> dict[Path, Testimony]:
    """What a run says, by file; of one that was no rehearsal nothing, nor of files that were edited since."""
    from ranksafe.runs.compared_ranks.executed_lines import lines_of_all, unchanged_text
    from ranksafe.runs.model import Outcome

    directory = result.run_directory
    if directory is None or not is_rehearsal(result.target):
        return {}
    passed = result.outcome is Outcome.SUCCEEDED
    harmless = lines_of_all(directory) if passed else {}
    failed = _lines_of_failures(result.failures)
    found: dict[Path, Testimony] = {}
    for path in {*harmless, *failed}:
        text = unchanged_text(path, directory)
        if text is not None:
            found[path] = Testimony(
                path,
                text.splitlines(),
                simulated_gpus(result.target),
                {code: frozenset(lines) for code, lines in failed.get(path, {}).items()},
                frozenset(line - 1 for line in harmless.get(path, ())),
            )
    return found


def _lines_of_failures(failures: Iterable[Failure]) -> dict[Path, dict[str, set[int]]]:
    found: dict[Path, dict[str, set[int]]] = {}
    for failure in failures:
        if failure.code is not None:
            for path, line in _places(failure):
                found.setdefault(path, {}).setdefault(failure.code, set()).add(line - 1)
    return found


def _places(failure: Failure) -> Iterator[tuple[Path, int]]:
    if failure.filename and failure.line:
        yield Path(failure.filename), failure.line
    for frame in failure.frames:
        if frame.in_user_code:
            yield Path(frame.filename), frame.line


_CONFIRMED = Translated(
    "Confirmed on {count} simulated GPUs.", "已在 {count} 个模拟 GPU 上得到证实。"
)
_HARMLESS = Translated(
    "Every rank of the last rehearsal, on {count} simulated GPUs, ran this without an error.",
    "上次预演（{count} 个模拟 GPU）中，所有 rank 执行此处时都没有出错。",
)
