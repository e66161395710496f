"""Known failures, most specific first; the first that matches explains."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.localization import Translated
from ranksafe.runs.explain.signatures import (
    collectives,
    data_parallel,
    devices,
    environment,
    launch,
    model,
    user_errors,
)
from ranksafe.runs.explain.signatures.signature import Signature
from ranksafe.runs.model import Frame

SIGNATURES: tuple[Signature, ...] = (
    *data_parallel.SIGNATURES,
    *model.SIGNATURES,
    *devices.SIGNATURES,
    *launch.SIGNATURES,
    *collectives.SIGNATURES,
    *environment.SIGNATURES,
    *user_errors.SIGNATURES,
)


def match(
    text: str, frames: Sequence[Frame] = (), user_frame: Frame | None = None
) -> tuple[Signature, Translated] | None:
    """The first signature that fits, with its explanation filled in; None: the failure is not known."""
    for candidate in SIGNATURES:
        found = candidate.pattern.search(text)
        if found is None or not _fits(candidate, frames, user_frame):
            continue
        values = {**candidate.defaults, **{k: v for k, v in found.groupdict().items() if v}}
        return candidate, candidate.explanation.filled(**values)
    return None


def candidates_of(kind: str) -> tuple[str, ...]:
    """The rules that may predict failures of this kind, where the text alone does not tell which."""
    return next(
        (each.candidates for each in SIGNATURES if each.kind == kind and each.candidates), ()
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


__all__ = ["SIGNATURES", "Signature", "candidates_of", "match"]
