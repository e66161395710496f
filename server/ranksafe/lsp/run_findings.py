"""Failures of runs as places in files: kept until their line is edited or the script's next run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ranksafe.checker.finding import Level, Related
from ranksafe.localization import Translated
from ranksafe.lsp.history import shifted_range
from ranksafe.lsp.lines import TouchedLines
from ranksafe.lsp.messages import CALLED_FROM, ON_RANK
from ranksafe.source.position import Position, Range

if TYPE_CHECKING:
    from ranksafe.runs.model import Failure, Frame, RunResult


Key = tuple[str, Path, str, Range]


@dataclass(frozen=True, slots=True)
class RunFinding:
    """One failure of a run, on the line that caused it."""

    script: Path
    run_id: str
    path: Path
    range: Range
    code: str | None
    kind: str
    message: Translated
    related: tuple[Related, ...]
    level: Level
    """INFORMATION: a rank that failed because another one had."""
    told: Range
    """Where the run told of it; edits since have moved `range`."""
    of_forecast: bool = False
    """Told by a forecast of memory: no other run says anything about it, nor it about theirs."""

    @property
    def key(self) -> Key:
        """The same for what is told while the run goes on and again, with more known, at its end."""
        return self.run_id, self.path, self.kind, self.told

    @property
    def can_run_again(self) -> bool:
        """Whether it came of a script's run; a log that was explained is none."""
        return self.script.suffix == ".py"

    def shifted(self, touched: TouchedLines) -> RunFinding | None:
        """The finding after an edit; None when its line was edited."""
        if self.range.start.line <= touched.last and touched.first <= self.range.end.line:
            return None
        return replace(self, range=shifted_range(self.range, touched))


@dataclass(slots=True)
class RunFindings:
    """The failures of each script's last run, by file."""

    _by_path: dict[Path, list[RunFinding]] = field(default_factory=dict)
    _told: dict[tuple[Path, bool], frozenset[Key]] = field(default_factory=dict)
    """What was shown last of each script's run, and of its forecast."""

    def of(self, path: Path | None) -> list[RunFinding]:
        """The failures in a file. The list is shared: an open document takes away what its edits outdate."""
        return self._by_path.setdefault(path, []) if path is not None else []

    def replace(
        self, script: Path, findings: Iterable[RunFinding], *, of_forecast: bool = False
    ) -> None:
        """Put the failures of a script's new run, or forecast, in place of those of its last one."""
        source = (script, of_forecast)
        for known in self._by_path.values():
            known[:] = [each for each in known if (each.script, each.of_forecast) != source]
        given = list(findings)
        self._told[source] = frozenset(finding.key for finding in given)
        for finding in given:
            self.of(finding.path).append(finding)

    def update(
        self, script: Path, findings: Iterable[RunFinding], *, of_forecast: bool = False
    ) -> None:
        """The same, where some may have been shown while the run went on: those stay where edits have moved them, and
        what was mended meanwhile does not come back."""
        given = list(findings)
        told = self._told.get((script, of_forecast), frozenset())
        now = {known.key: known.range for known in self.all() if known.script == script}
        standing = [each for each in given if each.key in now or each.key not in told]
        self.replace(
            script,
            [replace(each, range=now.get(each.key, each.range)) for each in standing],
            of_forecast=of_forecast,
        )
        self._told[script, of_forecast] = frozenset(each.key for each in given)

    def all(self) -> list[RunFinding]:
        """Every failure that still stands."""
        return [finding for findings in self._by_path.values() for finding in findings]


def findings_of(script: Path, result: RunResult) -> list[RunFinding]:
    """The failures of a run that have a place; one without a line stands at the top of the script."""
    return [finding_of(script, result.run_id, failure) for failure in result.failures]


def finding_of(script: Path, run_id: str, failure: Failure) -> RunFinding:
    """One failure as a place; one without a line stands at the top of the script."""
    path, place = place_of(failure)
    return RunFinding(
        script=script,
        run_id=run_id,
        path=path or script,
        range=place,
        code=failure.code,
        kind=failure.kind,
        message=_message(failure),
        related=tuple(_related(frame) for frame in _callers(failure)),
        level=Level.ERROR if failure.root_cause else Level.INFORMATION,
        told=place,
    )


def place_of(told: Failure | Frame | None) -> tuple[Path | None, Range]:
    """The file and the range in it; None and the top of whatever file where nothing better is known."""
    path = _absolute(told.filename) if told is not None and told.filename and told.line else None
    if told is None or path is None:
        return None, Range(Position(0, 0), Position(0, 0))
    return path, _range(told.line, told.column, told.end_line, told.end_column)


def _message(failure: Failure) -> Translated:
    rank = Translated("", "") if failure.rank is None else ON_RANK.filled(rank=failure.rank)
    head = f"{failure.message}"
    english = " ".join(filter(None, (head, f"({rank.en})" if rank.en else "")))
    chinese = "".join(filter(None, (head, f"（{rank.zh_cn}）" if rank.zh_cn else "")))
    return Translated(
        f"{english}\n{failure.explanation.en}".rstrip(),
        f"{chinese}\n{failure.explanation.zh_cn}".rstrip(),
    )


def _callers(failure: Failure) -> list[Frame]:
    """The call chain without the frame that carries the diagnostic itself: the user's own frames, innermost first,
    then the place in a library that raised; what lies between tells a user nothing."""
    chain = [
        frame
        for frame in reversed(failure.frames)
        if (frame.filename, frame.line) != (failure.filename, failure.line)
        and Path(frame.filename).is_absolute()
    ]
    own = [frame for frame in chain if frame.in_user_code]
    raised = [frame for frame in chain[:1] if not frame.in_user_code]
    return [*own, *raised]


def _related(frame: Frame) -> Related:
    source = f": {frame.source.strip()}" if frame.source.strip() else ""
    message = CALLED_FROM.filled(function=frame.function)
    return Related(
        Translated(f"{message.en}{source}", f"{message.zh_cn}{source}"),
        _range(frame.line, frame.column, frame.end_line, frame.end_column),
        Path(frame.filename),
    )


def _range(
    line: int | None, column: int | None, end_line: int | None, end_column: int | None
) -> Range:
    """From 1-based to 0-based; without columns the whole line."""
    first = max((line or 1) - 1, 0)
    if column is None or end_column is None:
        return Range(Position(first, 0), Position(first, _WHOLE_LINE))
    last = max((end_line or line or 1) - 1, first)
    return Range(Position(first, column - 1), Position(last, end_column - 1))


_WHOLE_LINE = 1_000_000
"""Beyond any line: cut to the line's end when it is converted for the client."""


def _absolute(filename: str) -> Path | None:
    path = Path(filename)
    return path if path.is_absolute() else None
