"""Where a rank is, in lines for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ranksafe.localization import Language, Translated
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.model import Frame
from ranksafe.runs.watch.stacks import Look

Paint = Callable[[str, str], str]
"""A text in the colour named first (``bold``, ``dim``, ``cyan``)."""


def _plain(color: str, text: str) -> str:  # noqa: ARG001
    return text


def described(
    look: Look,
    user_code: UserCode,
    language: Language,
    *,
    all_threads: bool = False,
    paint: Paint = _plain,
) -> Iterator[str]:
    """What the rank does, then the frames of its main thread or of all threads, outermost first."""
    head = paint("bold", f"rank {look.rank}")
    yield f"{head}: {_doing(look).in_language(language)}"
    threads = look.threads if all_threads else look.threads[:1]
    for thread in threads:
        if all_threads:
            yield f"  {paint('cyan', thread.name or '?')}"
        for frame in user_code.marked(thread.frames):
            yield f"    {_place(frame, paint)}"


def _doing(look: Look) -> Translated:
    if not look.answered:
        return _SILENT
    wait = next(iter(look.waits), None)
    if wait is None:
        return _NOT_WAITING.filled(step=look.steps) if look.steps else _RUNNING
    return _WAITS.filled(call=wait.call, seconds=max(0, round(look.time - wait.since)))


def _place(frame: Frame, paint: Paint) -> str:
    text = f"{frame.filename}:{frame.line} {frame.function}"
    text = paint("bold" if frame.in_user_code else "dim", text)
    return f"{text}  {frame.source}" if frame.source and frame.in_user_code else text


_WAITS = Translated("waits in {call} since {seconds} s", "在 {call} 中已等待 {seconds} 秒")
_RUNNING = Translated("runs, in no collective", "运行中，不在集合通信中")
_NOT_WAITING = Translated(
    "runs, in no collective, {step} optimizer steps made",
    "运行中，不在集合通信中，已完成 {step} 个优化器步",
)
_SILENT = Translated(
    "does not answer; where it was last seen", "没有应答；以下是它最后一次被观察到的位置"
)
