"""What `transformers.Trainer` hands to the model as `num_items_in_batch`, by transformers version.

Read in the wheels from 4.45.2 to 5.23.0 (`Trainer.get_batch_samples`, from 5.0 `_get_num_items_in_batch`) and run with
two emulated replicas on 4.46.1, 4.46.3, 4.47.1, 4.49.0, 4.50.3, 4.51.3, 4.56.2, 4.57.6 and 5.23.0.
"""

from __future__ import annotations

from enum import Enum

from packaging.version import Version


class Count(Enum):
    """The form of the count when a single process sees several GPUs."""

    UNKNOWN = "unknown"
    ABSENT = "absent"
    """transformers < 4.46: not handed over."""
    INTEGER = "integer"
    """4.46.0, 4.46.1, 4.47.1 - 4.49.0: a Python int; every replica divides its part of the sum by the whole count."""
    ZERO_DIMENSIONAL = "zero-dimensional"
    """4.46.2 - 4.47.0, 4.50.0 - 4.50.3: a 0-d tensor, which nn.DataParallel cannot split."""
    LENGTH_ONE = "length-one"
    """4.51.0 - 4.56.2: a tensor of length one, of which nn.DataParallel makes one piece: one replica runs."""
    PER_REPLICA = "per-replica"
    """From 4.57.0 on: one entry per replica; `Trainer.compute_loss` multiplies the loss by their number."""


_WINDOWS = (
    (Version("4.46.0"), Count.ABSENT),
    (Version("4.46.2"), Count.INTEGER),
    (Version("4.47.1"), Count.ZERO_DIMENSIONAL),
    (Version("4.50.0"), Count.INTEGER),
    (Version("4.51.0"), Count.ZERO_DIMENSIONAL),
    (Version("4.57.0"), Count.LENGTH_ONE),
)
"""Each form with the first version that no longer has it."""

PASSES_COUNT = Version("4.46.0")
"""From here on `training_step` and `compute_loss` are called with `num_items_in_batch`."""
PASSES_DEVICE = Version("4.50.0")
"""From here on `get_batch_samples` is called with a third argument, the device."""


def count_at(version: Version | None) -> Count:
    """The form at a transformers version; UNKNOWN when the version is not known."""
    if version is None:
        return Count.UNKNOWN
    for end, form in _WINDOWS:
        if version < end:
            return form
    return Count.PER_REPLICA
