"""Random numbers: what every process that starts draws for itself, and processes that are forked would share."""

from __future__ import annotations

import random
import sys
import weakref
from typing import Any


class Unseeded:
    """The generators of Python's `random` that imports made without a seed, as datasets 5.2.0 does for the names of its
    cache files. `random`'s own one sees to itself in a fork."""

    def __init__(self) -> None:
        self._made: dict[int, weakref.ref[random.Random]] = {}
        kind: Any = random.Random
        self._seed = original = kind.seed

        def seed(generator: Any, value: Any = None, version: int = 2) -> None:
            if value is None:
                self._made[id(generator)] = weakref.ref(generator)
            else:
                self._made.pop(id(generator), None)
            original(generator, value, version)

        kind.seed = seed

    def stop(self) -> None:
        """Note no more."""
        kind: Any = random.Random
        kind.seed = self._seed

    def draw_anew(self) -> None:
        """In a fork: give each, and those of numpy and torch, another state."""
        for reference in self._made.values():
            generator = reference()
            if generator is not None:
                generator.seed()
        numpy: Any = sys.modules.get("numpy.random")
        if numpy is not None:
            numpy.seed()
        torch: Any = sys.modules.get("torch")
        if torch is not None:
            torch.default_generator.seed()
