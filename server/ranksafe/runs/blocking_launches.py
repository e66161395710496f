"""Running again with CUDA kernels that end before their Python line does.

Kernels run behind the program, so the line that an assertion of a kernel is reported on is a later one. With
CUDA_LAUNCH_BLOCKING=1 each launch waits, and the line is the right one; the run is slower.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ranksafe.runs.model import RunRequest

_COME_LATE: Final = frozenset(
    {"cuda-assert", "cuda-illegal-access", "cuda-library-error", "cuda-call-refused"}
)


def comes_late(kind: str) -> bool:
    """Whether failures of a kind are reported on a later line than the one that caused them."""
    return kind in _COME_LATE


def with_blocking_launches(request: RunRequest) -> RunRequest:
    """The same run with launches that wait."""
    return replace(request, environment={**request.environment, "CUDA_LAUNCH_BLOCKING": "1"})
