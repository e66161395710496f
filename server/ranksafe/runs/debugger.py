"""A run of which one rank waits for a debugger: what its environment says, and what that changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranksafe.localization import Language, Translated
from ranksafe.runs import agent
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.interpreter import Interpreter
from ranksafe.runs.model import Debugging, RunEvent


def let_debugger_in(
    environment: dict[str, str], debugging: Debugging, interpreter: Interpreter, ranks: int | None
) -> Translated:
    """Have the rank wait; returns what that changes about the run, in words.

    ``ranks``: how many there will be; None: only the run itself shows it. Raises RunNotPossible without such a rank,
    or without debugpy.
    """
    if ranks is not None and debugging.rank >= ranks:
        raise RunNotPossible(_NO_RANK.filled(rank=debugging.rank, last=ranks - 1))
    environment[agent.DEBUGGED_RANK_VARIABLE] = str(debugging.rank)
    if "debugpy" not in interpreter.versions:
        libraries = debugging.libraries
        # A relative path would be the script's.
        if libraries is None or not libraries.is_absolute() or not (libraries / "debugpy").is_dir():
            raise RunNotPossible(_NO_DEBUGPY.filled(path=interpreter.path))
        environment[agent.DEBUGPY_VARIABLE] = str(libraries)
    return _WAITS.filled(rank=debugging.rank)


def debugger_event(entry: Mapping[str, Any], rank: int | None, language: Language) -> RunEvent:
    """What the rank's journal says of its debugger."""
    host, port = entry.get("host"), entry.get("port")
    if isinstance(host, str) and isinstance(port, int):
        text = _LISTENS.filled(rank=rank, address=f"{host}:{port}")
        return RunEvent("debugger", text.in_language(language), rank, address=(host, port))
    text = _CANNOT_LISTEN.filled(rank=rank, reason=entry.get("problem"))
    return RunEvent("debugger", text.in_language(language), rank)


_NO_RANK = Translated(
    en="There is no rank {rank} to debug: the last one is rank {last}.",
    zh_cn="没有可供调试的 rank {rank}：最后一个是 rank {last}。",
)
_NO_DEBUGPY = Translated(
    en="debugpy, which lets a debugger in, is not installed for {path}. Install it there "
    "(python -m pip install debugpy), or install the extension Python Debugger, which brings it along.",
    zh_cn="{path} 的环境中没有安装调试所需的 debugpy。请在该环境中安装（python -m pip install debugpy），"
    "或安装自带 debugpy 的 Python Debugger 扩展。",
)
_WAITS = Translated(
    en="rank {rank} waits for a debugger before the script begins; hangs are not looked for",
    zh_cn="rank {rank} 在脚本开始前等待调试器；不检测挂起",
)
_LISTENS = Translated(
    en="rank {rank} waits for a debugger (debugpy) at {address}",
    zh_cn="rank {rank} 正在 {address} 等待调试器（debugpy）",
)
_CANNOT_LISTEN = Translated(
    en="rank {rank} runs without a debugger, debugpy did not start there: {reason}",
    zh_cn="rank {rank} 在没有调试器的情况下运行，debugpy 未能在其中启动：{reason}",
)
