"""Why a run cannot start."""

from __future__ import annotations

from ranksafe.localization import Translated


class RunNotPossible(Exception):
    """Raised before a rank exists: wrong target, no interpreter, no accelerate, no free GPU, a full disk."""

    def __init__(self, message: Translated) -> None:
        super().__init__(message.en)
        self.message = message


class RunCancelled(RunNotPossible):
    """The user said no, or cancelled while the run was being prepared."""

    def __init__(self) -> None:
        super().__init__(_CANCELLED)


_CANCELLED = Translated(en="Cancelled before the run started.", zh_cn="运行在开始前已被取消。")
