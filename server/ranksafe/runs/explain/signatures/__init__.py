"""Known failures as data, most specific first; the first that matches explains."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Final

from ranksafe.localization import Translated, both
from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.signatures.gpu_memory import explain_gpu_memory
from ranksafe.runs.explain.signatures.signature import Known
from ranksafe.runs.explain.signatures.signature import Signature as Signature
from ranksafe.runs.explain.signatures.signature import signatures_about as signatures_about
from ranksafe.runs.explain.timeouts import explain_timeout
from ranksafe.runs.model import Failure, Frame

SUBJECTS: Final = (
    *("data_parallel", "model", "gpu_memory", "devices", "cuda_runtime", "inference", "hccl"),
    *("launch", "credentials", "network", "collectives", "workers", "schedulers", "remote"),
    *("machine", "ray_actors", "loading_data", "configuration", "installation", "wrappers"),
    *("trainers", "training_step"),
)
"""The files of the data, in the order in which they are asked."""

_LONGEST: Final = 8_000
"""Characters of a message that are looked at, as of a log's line (`ranksafe.runs.log_text.reader`)."""
_LONGEST_END: Final = 2_000


@cache
def signatures() -> tuple[Signature, ...]:
    """All known failures, those first that need more than the message."""
    found = (each for subject in SUBJECTS for each in signatures_about(subject))
    return tuple(sorted(found, key=lambda each: not each.needs))


def match(
    text: str,
    frames: Sequence[Frame] = (),
    user_frame: Frame | None = None,
    *,
    printed: bool = False,
    around: Sequence[Frame] = (),
    evidence: Evidence | None = None,
) -> tuple[Signature, Translated] | None:
    """The first signature that fits, with its explanation filled in; None: the failure is not known.

    ``printed``: the text is a line of a log, not an exception. The rest is what is known besides, see `Known`.
    """
    text = _shortened(text)
    known = Known(frames, user_frame, around, evidence)
    for candidate in _worded(text):
        told = None if printed and candidate.raised_only else candidate.told(text, known)
        if told is not None and candidate.elaborate:
            told = _ELABORATE[candidate.elaborate](text, known, candidate.action)
        if told is not None:
            return candidate, told
    return None


_ELABORATE: Final[Mapping[str, Callable[[str, Known, Translated], Translated]]] = {
    "gpu memory": explain_gpu_memory,
    "gpu memory, by what the run shows": lambda text, known, _: explain_gpu_memory(
        text, known, None
    ),
    "timeout": explain_timeout,
}
"""By what a row calls it: makes the explanation of a message, what else is known and the row's action."""


@lru_cache(maxsize=1024)
def _worded(text: str) -> tuple[Signature, ...]:
    """The rows whose words a text has; ranks that fail alike say the same over and over."""
    return tuple(each for each in signatures() if each.pattern.search(text))


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - _LONGEST_END]}\n…\n{text[-_LONGEST_END:]}"


def with_notes(
    failure: Failure, subject: str, facts: Iterable[str], evidence: Evidence | None = None
) -> Failure:
    """The failure with what the rows of a file add to failures of its kind; the first `instead` counts.

    ``facts``: see `Known`.
    """
    known = Known(failure.frames, evidence=evidence, facts="\n".join(facts))
    message, before = _shortened(failure.message), failure.explanation
    for note in signatures_about(subject):
        if not re.fullmatch(note.kind, failure.kind):
            continue
        said, told = failure.explanation, note.told(message, known)
        if told is None or (note.instead and said is not before):
            continue
        if said is UNKNOWN or note.instead:
            failure = replace(failure, explanation=told)
        else:
            failure = replace(failure, explanation=both(said, told))
    return failure


UNKNOWN: Final = Translated(
    en="This failure is not one ranksafe knows; the message and the call chain are the rank's own.",
    zh_cn="ranksafe 不认识此故障；消息和调用链均为该 rank 的原始内容。",
)


def meaning_of(subject: str, kind: str) -> Translated | None:
    """What the rows of a file say of a kind."""
    rows = signatures_about(subject)
    return next((each.explanation for each in rows if each.kind == kind), None)


def meaning_of_end(kind: str) -> Translated:
    """What an end of this kind means, which no message tells."""
    return next(each.explanation for each in signatures_about("ends") if each.kind == kind)


def candidates_of(kind: str) -> tuple[str, ...]:
    """The rules that may predict failures of this kind, where the text alone does not tell which."""
    return next(
        (each.candidates for each in signatures() if each.kind == kind and each.candidates), ()
    )


def may_be_predicted(kind: str) -> bool:
    """Whether failures of this kind come of what a rule is about."""
    return any(each.code or each.candidates for each in signatures() if each.kind == kind)
