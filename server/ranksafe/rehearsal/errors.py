"""Why a rehearsal cannot start."""

from __future__ import annotations

from ranksafe.localization import Translated


class RehearsalNotPossible(Exception):
    """No simulated device can be had here; ``message`` says why and what to do, in both languages."""

    def __init__(self, message: Translated) -> None:
        super().__init__(message.en)
        self.message = message
