"""Which tracebacks of a log ended the run, and which it survived: those that were caught, logged and gone on after.

A run that goes on shows it by what it counts (steps, epochs, losses). Ranks that did not fail count on for a moment, so
a step or two after a traceback says nothing; several do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ranksafe.runs.diagnosis.common_failure import counts, follows, is_launchers
from ranksafe.runs.explain.traceback_text import Located
from ranksafe.runs.log_text.progress import is_completion, is_progress
from ranksafe.runs.log_text.reader import Line, SaidBy

_SURVIVED_LINES = 60
_STEPS_AFTER = 3
_MANY_STEPS_AFTER = 10
_HANDLED = re.compile(
    r"\bretry|\brestart|\bskip|\bignor|\battempt \d|\bfall(?:ing)? ?back|\bcontinu|\bnon-fatal\b|\btry(?:ing)? again",
    re.IGNORECASE,
)
_SAW = "failed (exitcode: "
_REPORT = re.compile(
    r"ChildFailedError|exitcode  :|returned non-zero exit status|died with <Signals"
)
"""Of a launcher, at its end."""
_UNCAUGHT = 1
"""The status of a Python process that an exception ended."""


def went_on(at: int, said: SaidBy) -> bool:
    """Whether the log counts steps after this line, up to its end, or says that the run came to its end."""
    after = [text for number, text in said.tail if number > at]
    return sum(is_progress(text) for text in after) >= _STEPS_AFTER or any(
        is_completion(text) for text in after
    )


def is_recovered(said: SaidBy) -> bool:
    """Whether the ranks went on after the last failure that torchrun saw, and it gave no report in the end: it had
    started them anew, which it says at a level that is not shown."""
    lines = [line for each in said.others for line in each]
    failed = [number for number, text in lines if _SAW in text]
    reported = any(_REPORT.search(text) for _, text in lines)
    return bool(failed) and not reported and went_on(max(failed), said)


def counts_on(at: int, lines: Sequence[Line]) -> bool:
    """Whether these lines count steps after this one."""
    return sum(is_progress(text) for number, text in lines if number > at) >= _STEPS_AFTER


def final(found: Iterable[Located], said: SaidBy, ended: bool) -> list[Located]:
    """The tracebacks at the end of a stream, without those after which the run went on.

    ``ended``: whether a launcher or a scheduler says that a rank failed.
    """
    last_ones: list[Located] = []
    for each in (each for each in found if not each.ignored):
        if last_ones and each.first - last_ones[-1].last > _SURVIVED_LINES and not ended:
            last_ones.clear()
        last_ones.append(each)
    own = [each for each in last_ones if counts(each)]
    if not own or ended or len(own) < len(last_ones):
        return own
    last = own[-1]
    if last.logged and _is_said_to_go_on(last, said):
        return []
    if is_launchers(last.raised):
        # What counts on is another job's.
        return own
    return [] if went_on(last.last, said) else own


def not_gone_on(
    found: Sequence[Located], lines: Sequence[Line], exits: Iterable[int] = ()
) -> list[Located]:
    """The tracebacks of one stream after which it does not count on.

    ``exits``: the statuses that a launcher saw. Where steps follow even the last traceback, it stays all the same as
    long as they may be another rank's, and nothing says that it was caught.
    """
    steps = [number for number, text in lines if is_progress(text)]
    parts: list[list[Located]] = [[]]
    for each in found:
        before = parts[-1][-1].last if parts[-1] else each.first
        if sum(before < step < each.first for step in steps) >= _STEPS_AFTER:
            parts.append([])
        parts[-1].append(each)
    kept = parts[-1]
    while len(parts) > 1 and all(follows(each.raised) for each in kept):
        parts.pop()
        kept = [*parts[-1], *kept]
    unhandled = [each for each in kept if not _HANDLED.search(each.announced)]
    kept = unhandled or kept
    if not kept or follows(kept[-1].raised) or is_launchers(kept[-1].raised):
        return kept
    after = sum(step > kept[-1].last for step in steps)
    caught = not unhandled or kept[-1].logged or after >= _MANY_STEPS_AFTER
    otherwise = any(status != _UNCAUGHT for status in exits)
    return [] if after >= _STEPS_AFTER and (caught or otherwise) else kept


def last_traceback(found: Iterable[Located]) -> Located | None:
    """The last traceback counts: earlier ones were survived. So does the one before, if the last only follows it."""
    own = [each for each in found if counts(each)]
    if not own:
        return None
    causes = [each for each in own[-3:] if not follows(each.raised)]
    return causes[-1] if causes else own[-1]


def _is_said_to_go_on(last: Located, said: SaidBy) -> bool:
    """Whether a logged error is said to be handled, by the record or after it, or anything counts on."""
    after = [text for number, text in said.tail if number > last.last]
    return any(_HANDLED.search(text) for text in (last.announced, *after)) or any(
        is_progress(text) or is_completion(text) for text in after
    )
