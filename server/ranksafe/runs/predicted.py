"""The rule behind a failure that several rules predict: the one that has a finding in the code that failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.registry import Registry
from ranksafe.launch.context import LaunchContext
from ranksafe.runs.explain.signatures import candidates_of
from ranksafe.runs.model import Failure, Frame

_LONGEST_FILE = 2_000_000


def with_predicted_rule(failure: Failure, gpus: int | None) -> Failure:
    """``failure`` with the code of the candidate rule whose finding is nearest to one of the user's frames.

    Unchanged where no rule is a candidate, or none of them has a finding there; a code that is no candidate stays.
    """
    candidates = candidates_of(failure.kind)
    if not candidates or failure.code not in (None, *candidates):
        return failure
    analyzer = Analyzer(Registry.load(), Configuration(select=candidates), LaunchContext(gpus=gpus))
    nearest = min(_distances(failure, analyzer, candidates), default=None)
    return failure if nearest is None else replace(failure, code=nearest[2])


def _distances(
    failure: Failure, analyzer: Analyzer, candidates: tuple[str, ...]
) -> Iterator[tuple[int, int, str]]:
    """Frames from the innermost (0), lines between the frame and the finding, the finding's code."""
    own = [frame for frame in reversed(failure.frames) if frame.in_user_code]
    first_of_file: dict[str, tuple[int, Frame]] = {}
    for depth, frame in enumerate(own):
        first_of_file.setdefault(frame.filename, (depth, frame))
    for depth, frame in first_of_file.values():
        path = Path(frame.filename)
        try:
            if path.stat().st_size > _LONGEST_FILE:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for finding in analyzer.open(path, text).findings:
            if finding.code in candidates:
                yield depth, abs(finding.range.start.line + 1 - frame.line), finding.code
