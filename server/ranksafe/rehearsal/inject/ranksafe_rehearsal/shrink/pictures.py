"""Synthetic pictures in any number, made when they are looked at."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

_APART = 7
"""Bytes between the beginnings of two pictures in the noise that all of them are windows of."""
_SIDE = 256
_KEPT = 64


def windows(count: int, shape: tuple[int, ...], seed: int) -> Any:
    """An array of ``count`` different pictures of bytes that takes the memory of a few: they overlap in noise."""
    import numpy as np  # type: ignore[import-not-found]

    inner = [int(np.prod(shape[at + 1 :])) for at in range(len(shape))]
    length = (count - 1) * _APART + int(np.prod(shape))
    noise = np.random.default_rng(seed).integers(0, 256, length, dtype=np.uint8)
    return np.lib.stride_tricks.as_strided(noise, (count, *shape), (_APART, *inner))


def labels(count: int, classes: int, seed: int) -> list[int]:
    """A class for each of ``count`` pictures."""
    import numpy as np

    return [int(value) for value in np.random.default_rng(seed).integers(0, classes, count)]


def picture(number: int) -> Any:
    """A square colour picture as PIL has them; of 64 kinds, so that it costs nothing."""
    from PIL import Image  # type: ignore[import-not-found]

    return Image.fromarray(windows(_KEPT, (_SIDE, _SIDE, 3), 1)[number % _KEPT])


class Labels(Sequence[Any]):
    """The classes of a folder's pictures, without a list; it can be sent to a worker."""

    def __init__(self, count: int, classes: int) -> None:
        self._count = count
        self._classes = classes

    def _entry(self, number: int) -> Any:
        return number % self._classes

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._entry(each) for each in range(*index.indices(self._count))]
        return self._entry(range(self._count)[index])

    def __iter__(self) -> Iterator[Any]:
        return map(self._entry, range(self._count))


class Samples(Labels):
    """The paths with the classes."""

    def __init__(self, count: int, classes: int, folder: str) -> None:
        super().__init__(count, classes)
        self._folder = folder

    def _entry(self, number: int) -> Any:
        label = number % self._classes
        return os.path.join(self._folder, f"class {label}", f"{number}.jpg"), label


def load(path: str) -> Any:
    """The picture of one of `Samples`."""
    return picture(int(os.path.splitext(os.path.basename(path))[0]))
