"""This machine as a host: a login node where the editor itself runs, and what tests need no connection for."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.hosts.boot import PYTHON_OPTIONS, TOO_OLD, opening
from ranksafe.runs.hosts.errors import HostUnreachable
from ranksafe.runs.hosts.piped import AskedHost, PipedConversation
from ranksafe.runs.hosts.protocol import Conversation, never


class LocalHost(AskedHost):
    """This machine."""

    @property
    def name(self) -> str:
        """As people say it."""
        return "localhost"

    def start(
        self,
        program: str,
        request: Mapping[str, Any],
        *,
        interpreter: str = "python3",
        should_stop: Callable[[], bool] = never,
    ) -> Conversation:
        """Start ``program`` in a process of its own; ``python3`` is the interpreter that runs ranksafe."""
        named = str(Path(interpreter).expanduser())
        python = sys.executable if interpreter == "python3" else shutil.which(named)
        if python is None:
            raise HostUnreachable(_NO_PYTHON.filled(python=interpreter))
        try:
            conversation = PipedConversation([python, *PYTHON_OPTIONS], opening(program, request))
        except OSError as error:
            message = _DOES_NOT_RUN.filled(python=python, reason=error.strerror)
            raise HostUnreachable(message) from error
        status = conversation.wait_for_greeting(math.inf, should_stop)
        if status is not None:
            reason = "CPython < 3.8" if status == TOO_OLD else conversation.last_words
            raise HostUnreachable(_DOES_NOT_RUN.filled(python=python, reason=reason))
        return conversation


_NO_PYTHON = Translated(en="There is no {python} on this machine.", zh_cn="本机上没有 {python}。")
_DOES_NOT_RUN = Translated(
    en="The Python interpreter {python} does not run: {reason}",
    zh_cn="Python 解释器 {python} 无法运行：{reason}",
)
