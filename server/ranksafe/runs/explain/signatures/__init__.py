"""Known failures as data, most specific first; the first that matches explains."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from ranksafe.localization import Translated
from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.signatures.signature import Known, Signature, signatures_about
from ranksafe.runs.model import Failure, Frame

SUBJECTS: Final = (
    "data_parallel",
    "model",
    "gpu_memory",
    "devices",
    "cuda_runtime",
    "inference",
    "hccl",
    "launch",
    "credentials",
    "network",
    "collectives",
    "workers",
    "schedulers",
    "remote",
    "machine",
    "ray_actors",
    "loading_data",
    "configuration",
    "installation",
    "wrappers",
    "trainers",
    "training_step",
)
"""The files of the data, in the order in which they are asked."""


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
    known = Known(frames, user_frame, around, evidence)
    for candidate in signatures():
        told = None if printed and candidate.raised_only else candidate.told(text, known)
        if told is not None:
            return candidate, told
    return None


def note_on(failure: Failure, evidence: Evidence, facts: str) -> tuple[Translated | None, bool]:
    """What the rest of the run adds to a failure of a known kind, and whether it replaces what was said of it.

    ``facts``: see `Known`.
    """
    known = Known(failure.frames, evidence=evidence, facts=facts)
    for note in signatures_about("notes"):
        told = note.told(failure.message, known) if note.kind == failure.kind else None
        if told is not None:
            return told, note.instead
    return None, False


def candidates_of(kind: str) -> tuple[str, ...]:
    """The rules that may predict failures of this kind, where the text alone does not tell which."""
    return next(
        (each.candidates for each in signatures() if each.kind == kind and each.candidates), ()
    )


__all__ = [
    "SUBJECTS",
    "Signature",
    "candidates_of",
    "match",
    "note_on",
    "signatures",
    "signatures_about",
]
