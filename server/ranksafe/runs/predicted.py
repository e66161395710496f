"""The rule behind a failure: of those that predict such a one, the rule that has a finding in the code that failed."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.finding import Finding
from ranksafe.checker.registry import Registry
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.runs.compared_ranks.ways_parted import KINDS as OF_ORDER
from ranksafe.runs.explain.collective_order import GROUPS_KIND
from ranksafe.runs.explain.signatures import candidates_of
from ranksafe.runs.model import Failure, Frame
from ranksafe.source.position import Range

_ORDER_OF_COLLECTIVES = "RS4"
_UNBOUND = re.compile(r"\AUnboundLocalError: ")
"""What a rank meets that did not take the branch in which the others made a value."""
_LONGEST_FILE = 2_000_000


def with_predicted_rule(failure: Failure, gpus: int | None, launcher: str | None = None) -> Failure:
    """``failure`` with the code of the rule that predicts it: of those that may, the one whose finding is nearest to
    one of the user's frames.

    Those may that expect such a message (`RuleMetadata.run_signatures`) or are candidates of its kind; of what raised
    nothing (`silent_kinds`), which may have many causes, those with a finding on the very line. Unchanged where none of
    them has a finding there. ``launcher``: where the run was told which one to use.
    """
    if failure.kind in {*OF_ORDER, GROUPS_KIND} or _UNBOUND.search(failure.message):
        failure = _with_rule_of_order(failure, gpus)
        if failure.code is not None:
            return failure
    if not any(frame.in_user_code for frame in failure.frames):
        return failure
    registry = _rules()
    candidates = {*candidates_of(failure.kind), *_expecting(failure.message, registry)}
    if failure.code is not None:
        candidates.add(failure.code)
    silent = {
        folder.metadata.code
        for folder in registry.rules
        if failure.kind in folder.metadata.silent_kinds
    }
    possible = candidates | silent
    if not possible:
        return failure
    known = Launcher(launcher) if launcher in set(Launcher) else Launcher.UNKNOWN
    launch = LaunchContext(gpus=gpus, launcher=known)
    analyzer = Analyzer(registry, Configuration(select=tuple(sorted(possible))), launch)
    found = _distances(failure, analyzer, possible)
    nearest = min((each for each in found if each[2] in candidates or not each[1]), default=None)
    return failure if nearest is None else replace(failure, code=nearest[2])


@functools.cache
def _rules() -> Registry:
    return Registry.load()


def _expecting(message: str, registry: Registry) -> Iterator[str]:
    """The rules that say such a message is what comes of their pitfall."""
    for folder in registry.rules:
        if any(re.search(each, message) for each in folder.metadata.run_signatures):
            yield folder.metadata.code


def _with_rule_of_order(failure: Failure, gpus: int | None) -> Failure:
    """``failure`` with the code of a rule that predicts it: one with a finding on the very line, where the ways of the
    ranks parted, where the others were, or on a call that led there; or that names such a line as another place of its
    own. Of several, the first in this order."""
    if failure.code is not None or failure.filename is None or failure.line is None:
        return failure
    own = [frame for frame in reversed(failure.frames) if frame.in_user_code]
    places = dict.fromkeys(
        [
            (failure.filename, failure.line),
            *failure.related,
            *((frame.filename, frame.line) for frame in own),
        ]
    )
    findings = _findings_of_order((Path(filename) for filename, _ in places), gpus)
    for filename, line in places:
        path, row = Path(filename), line - 1
        for finding in findings[path]:
            if _covers(finding.range, row):
                return replace(failure, code=finding.code)
        for file, found in findings.items():
            for finding in found:
                if any(
                    (related.path or file) == path and _covers(related.range, row)
                    for related in finding.related
                ):
                    return replace(failure, code=finding.code)
    return failure


def led_by_its_rule(failures: Sequence[Failure], gpus: int | None) -> list[Failure]:
    """Of ranks that met each other in collectives that do not belong together, first the one on whose line a rule
    predicts it: which of them noticed first is chance."""
    if not failures or failures[0].kind not in OF_ORDER:
        return list(failures)
    first = failures[0]
    alike = [each for each in failures if each.kind == first.kind]
    paths = {Path(each.filename) for each in alike if each.filename}
    findings = _findings_of_order(paths, gpus) if len(alike) > 1 else {}
    lead = next((each for each in alike if _is_found(each, findings)), first)
    if lead is first:
        return list(failures)
    leading = replace(lead, root_cause=True, explanation=first.explanation)
    following = [replace(each, root_cause=False) for each in failures if each is not lead]
    return [leading, *following]


def _is_found(failure: Failure, findings: Mapping[Path, tuple[Finding, ...]]) -> bool:
    found = findings.get(Path(failure.filename or ""), ())
    return failure.line is not None and any(_covers(each.range, failure.line - 1) for each in found)


def _findings_of_order(paths: Iterable[Path], gpus: int | None) -> dict[Path, tuple[Finding, ...]]:
    configuration = Configuration(select=(_ORDER_OF_COLLECTIVES,), preview=True)
    analyzer = Analyzer(_rules(), configuration, LaunchContext(gpus=gpus))
    texts = {path: _text_of(path) for path in paths}
    return {
        path: () if text is None else tuple(analyzer.open(path, text).findings)
        for path, text in texts.items()
    }


def _covers(place: Range, row: int) -> bool:
    return place.start.line <= row <= place.end.line


def _text_of(path: Path) -> str | None:
    try:
        if path.stat().st_size > _LONGEST_FILE:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _distances(
    failure: Failure, analyzer: Analyzer, candidates: Set[str]
) -> Iterator[tuple[int, int, str]]:
    """Frames from the innermost (0), lines between the frame and the finding, the finding's code."""
    own = [frame for frame in reversed(failure.frames) if frame.in_user_code]
    first_of_file: dict[str, tuple[int, Frame]] = {}
    for depth, frame in enumerate(own):
        first_of_file.setdefault(frame.filename, (depth, frame))
    for depth, frame in first_of_file.values():
        path = Path(frame.filename)
        text = _text_of(path)
        if text is None:
            continue
        for finding in analyzer.open(path, text).findings:
            if finding.code in candidates:
                yield depth, abs(finding.range.start.line + 1 - frame.line), finding.code
