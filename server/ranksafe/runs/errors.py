"""Why a run cannot start."""

from __future__ import annotations

from ranksafe.localization import Translated


class RunNotPossible(Exception):
    """Raised before a rank exists: wrong target, no interpreter, no accelerate, no free GPU, a full disk."""

    def __init__(self, message: Translated) -> None:
        super().__init__(message.en)
        self.message = message
