"""Exceptions that no signature knows, said in other words: nothing here guesses at a cause."""

from __future__ import annotations

from typing import Final

from ranksafe.localization import Translated
from ranksafe.runs.explain.meanings import around_training, python_errors

_SHORT: Final = 160


def meaning_of(text: str) -> Translated | None:
    """What the first line of an exception ("Type: message") means; None where it is not known."""
    line = text.strip().split("\n", 1)[0]
    for meaning in (*python_errors.MEANINGS, *around_training.MEANINGS):
        found = meaning.pattern.search(line)
        if found is not None:
            groups = {name: (value or "")[:_SHORT] for name, value in found.groupdict().items()}
            return meaning.said.filled(**groups)
    return None
