"""Known failures as data, most specific first; the first that matches explains."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from ranksafe.localization import Translated
from ranksafe.runs.explain.signatures.signature import Signature, signatures_about
from ranksafe.runs.model import Frame

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
    """All known failures."""
    return tuple(each for subject in SUBJECTS for each in signatures_about(subject))


def match(
    text: str,
    frames: Sequence[Frame] = (),
    user_frame: Frame | None = None,
    *,
    printed: bool = False,
) -> tuple[Signature, Translated] | None:
    """The first signature that fits, with its explanation filled in; None: the failure is not known.

    ``printed``: the text is a line of a log, not an exception.
    """
    for candidate in signatures():
        if printed and candidate.raised_only:
            continue
        found = candidate.pattern.search(text)
        if found is None or not _fits(candidate, frames, user_frame):
            continue
        if candidate.elaborate is not None:
            return candidate, candidate.elaborate(text)
        return candidate, candidate.explained(found.groupdict())
    return None


def candidates_of(kind: str) -> tuple[str, ...]:
    """The rules that may predict failures of this kind, where the text alone does not tell which."""
    return next(
        (each.candidates for each in signatures() if each.kind == kind and each.candidates), ()
    )


def _fits(candidate: Signature, frames: Sequence[Frame], user_frame: Frame | None) -> bool:
    if candidate.frames is not None and not any(
        candidate.frames.search(f"{frame.filename}:{frame.function}") for frame in frames
    ):
        return False
    if candidate.user_frame is not None:
        place = f"{user_frame.function}: {user_frame.source}" if user_frame else ""
        return bool(candidate.user_frame.search(place))
    return True


__all__ = ["SUBJECTS", "Signature", "candidates_of", "match", "signatures", "signatures_about"]
