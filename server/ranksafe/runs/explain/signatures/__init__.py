"""Known failures, most specific first; the first that matches explains."""

from __future__ import annotations

from collections.abc import Sequence

from ranksafe.localization import Translated
from ranksafe.runs.explain.signatures import (
    collectives,
    configuration,
    credentials,
    cuda_runtime,
    data_parallel,
    devices,
    gpu_memory,
    hccl,
    inference,
    installation,
    launch,
    loading_data,
    machine,
    model,
    network,
    ray_actors,
    remote,
    schedulers,
    trainers,
    training_step,
    workers,
    wrappers,
)
from ranksafe.runs.explain.signatures.signature import Signature
from ranksafe.runs.model import Frame

SIGNATURES: tuple[Signature, ...] = (
    *data_parallel.SIGNATURES,
    *model.SIGNATURES,
    *gpu_memory.SIGNATURES,
    *devices.SIGNATURES,
    *cuda_runtime.SIGNATURES,
    *inference.SIGNATURES,
    *hccl.SIGNATURES,
    *launch.SIGNATURES,
    *credentials.SIGNATURES,
    *network.SIGNATURES,
    *collectives.SIGNATURES,
    *workers.SIGNATURES,
    *schedulers.SIGNATURES,
    *remote.SIGNATURES,
    *machine.SIGNATURES,
    *ray_actors.SIGNATURES,
    *loading_data.SIGNATURES,
    *configuration.SIGNATURES,
    *installation.SIGNATURES,
    *wrappers.SIGNATURES,
    *trainers.SIGNATURES,
    *training_step.SIGNATURES,
)


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
    for candidate in SIGNATURES:
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
