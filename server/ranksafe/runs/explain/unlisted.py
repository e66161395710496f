"""What may be said of an exception that no signature knows: Python's own words, and whose line raised it.

Nothing here guesses at a cause: a sentence only says in other words what the exception's type, its message and its call
chain say themselves.
"""

from __future__ import annotations

import re

from ranksafe.localization import Translated, both
from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.locate import innermost_user_frame, place_in_function
from ranksafe.runs.explain.ordinary import PYTHONS_OWN

_INSTALLED = re.compile(r"/(?:site|dist)-packages/(?P<name>[A-Za-z_][\w-]*)")
_STANDARD = re.compile(r"/[Ll]ib/(?:python3[\d.]*/)?(?P<name>[A-Za-z_]\w*)")
_COMPILED = ("pandas", "numpy", "scipy", "sklearn", "pyarrow", "h5py")
"""Packages whose Cython sources are named from the package's own folder on."""
_WORKER, _SPAWNED = "DataLoader worker", "process "
"""How the place of an exception of another process begins."""
_SHORT = 160

_UNREADABLE = frozenset({"SyntaxError", "IndentationError", "TabError"})
_COMPILED_STACK = "\nException raised from "
"""Where torch's C++ begins to list its own frames (c10/util/Exception.cpp)."""

_TABLES = ("datasets", "pandas")
_OF_A_REFUSAL = frozenset({"ValueError", "TypeError", "NotImplementedError"})
"""What a library raises of its own will where it is given what it does not take."""


_CUT_OFF = Translated(
    en="The log ends in the middle of this rank's traceback, so what was raised is not in it; the last line shown "
    "is as "
    "far as it goes.",
    zh_cn="日志在该 rank 的 traceback 中间结束，因此不知道抛出了什么；所示最后一行是日志所到之处。",
)

UNKNOWN = Translated(
    en="This failure is not one ranksafe knows; the message and the call chain are the rank's own.",
    zh_cn="ranksafe 不认识此故障；消息和调用链均为该 rank 的原始内容。",
)


def unlisted(raised: Raised, origin: Raised) -> Translated:
    """What may be said of ``raised``, which began as ``origin``; both with their frames marked."""
    if not raised.type:
        return _CUT_OFF if raised.frames else UNKNOWN
    quoted = quoted_from_worker(raised) if origin is raised else None
    parts = [
        part
        for part in (
            _meaning(quoted or origin),
            _raiser(origin, quoted),
            _reason(quoted or origin),
            _became(raised, origin),
        )
        if part
    ]
    if not parts:
        return UNKNOWN
    said = parts[0]
    for part in parts[1:]:
        said = both(said, part)
    return said


def _meaning(origin: Raised) -> Translated | None:
    """A key that a table's own code looks up is a column."""
    package = _package(origin.frames[-1].filename) if origin.frames else None
    if origin.type == "KeyError" and package in _TABLES and " " not in origin.message:
        return _NO_COLUMN.filled(key=origin.message)
    if origin.type == "KeyError" and origin.frames and _is_name(origin.message):
        source = origin.frames[-1].source
        # row["category"] as an index of something else was found: its own key is another.
        tables = {
            found["table"]
            for found in _LOOKED_UP.finditer(source)
            if found["key"] in (None, origin.message.strip("'\""))
        }
        if len(tables) == 1 and not source.startswith("raise"):
            return _NO_KEY.filled(key=origin.message, table=tables.pop())
    return None


def _reason(origin: Raised) -> Translated | None:
    """The last line of a message of several: libraries put the reason there."""
    said = origin.message.split(_COMPILED_STACK, 1)[0]
    lines = [line.strip() for line in said.splitlines() if any(map(str.isalnum, line))]
    return _LAST_LINE.filled(line=_tail(lines[-1])) if len(lines) > 1 else None


def _tail(line: str) -> str:
    return line if len(line) <= _SHORT else f"…{line[-_SHORT:]}"


def _is_workers(raised: Raised) -> bool:
    return (raised.where or "").startswith(_WORKER)


def _is_name(message: str) -> bool:
    """Whether a KeyError has the key itself, as a look-up gives it."""
    return " " not in message or (message[:1] in "'\"" and message[:1] == message[-1:])


def quoted_from_worker(raised: Raised) -> Raised | None:
    """What a DataLoader worker or a spawned process raised, where ``raised`` only quotes it."""
    cause = raised.cause
    return cause if cause and (cause.where or "").startswith((_WORKER, _SPAWNED)) else None


_RAISED_HERE = Translated(
    en="This line raised the {type} itself.", zh_cn="该 {type} 由这一行自身抛出。"
)


def _raiser(origin: Raised, quoted: Raised | None) -> Translated | None:
    """Whose line raised it: a check of the user's own, the user's line itself, or a package that it calls."""
    if origin.type in _UNREADABLE:
        return _NOT_PYTHON
    own = innermost_user_frame(origin.frames)
    if not origin.frames:
        return _NO_TRACEBACK.filled(type=origin.type)
    if own is None:
        package = _package(origin.frames[-1].filename)
        return (
            _ONLY_PACKAGE.filled(
                package=package, place=place_in_function(origin.frames[-1]), type=origin.type
            )
            if package
            else None
        )
    if origin.frames[-1] is own:
        if origin.type == "AssertionError" or own.source.startswith("assert"):
            bare = own.source.startswith("assert ") and not origin.message
            return _BARE_ASSERTION.filled(check=own.source[7:_SHORT]) if bare else _OWN_ASSERTION
        if own.source.startswith("raise"):
            return _OWN_CHECK.filled(type=origin.type)
        said = _RAISED_HERE if PYTHONS_OWN.fullmatch(origin.type) else _IN_LINE
        return said.filled(type=origin.type)
    inner = quoted.frames if quoted is not None and quoted.frames else origin.frames
    package = _package(inner[-1].filename)
    refused = origin.type in _OF_A_REFUSAL and inner[-1].source.startswith("raise ")
    said = _REFUSED if refused else _IN_PACKAGE
    place = place_in_function(inner[-1])
    return said.filled(package=package, place=place) if package else _IN_PLACE.filled(place=place)


def _package(filename: str) -> str | None:
    """The installed package or the module of Python's own that a file is of."""
    path = filename.replace("\\", "/")
    if path.endswith((".pyx", ".pxi")):
        return next((name for name in _COMPILED if f"/{name}/" in f"/{path}"), None)
    for pattern in (_INSTALLED, _STANDARD):
        names = [found["name"] for found in pattern.finditer(path)]
        if names:
            return names[-1]
    return None


def _became(raised: Raised, origin: Raised) -> Translated | None:
    """How the exception that ended the rank came of the one that is blamed."""
    if raised.group:
        return _OF_A_GROUP.filled(count=len(raised.group), type=origin.type)
    if origin is raised:
        quoted = quoted_from_worker(raised)
        return _IN_WORKER if quoted and _is_workers(quoted) else None
    if _is_workers(origin):
        return _IN_WORKER
    if origin.where or not raised.type or raised.type == origin.type:
        return None
    return _TURNED_INTO.filled(inner=origin.type, outer=raised.type)


_LOOKED_UP = re.compile(r"(?<![\w.])(?P<table>[A-Za-z_][\w.]*)\[(?:[\"'](?P<key>[^\"']+)[\"']\])?")
_NO_KEY = Translated(
    en="There is no key {key} in {table}.",
    zh_cn="{table} 中没有键 {key}。",
)
_NO_COLUMN = Translated(
    en="The data has no column {key}: it has another name there, or was removed before.",
    zh_cn="数据中没有列 {key}：列名不同，或此前已被移除。",
)
_LAST_LINE = Translated(en='Its message ends: "{line}".', zh_cn="其消息的最后一行：“{line}”。")
_NOT_PYTHON = Translated(
    en="Python cannot read this file, so nothing of it ran.",
    zh_cn="Python 无法解析此文件，因此其中的代码都没有运行。",
)
_OWN_CHECK = Translated(
    en="A check in the code raised this {type} here on purpose; its message says what it found.",
    zh_cn="代码中的检查在此处主动抛出了该 {type}；它发现的问题见消息。",
)
_OWN_ASSERTION = Translated(
    en="The assertion on this line does not hold.", zh_cn="这一行的断言不成立。"
)
_BARE_ASSERTION = Translated(
    en='The assertion on this line does not hold: "{check}".',
    zh_cn="这一行的断言不成立：“{check}”。",
)
_IN_LINE = Translated(
    en="This line of yours, or compiled code that it calls, raised the {type}.",
    zh_cn="你的这一行，或它所调用的编译代码，抛出了该 {type}。",
)
_IN_PACKAGE = Translated(
    en="It was raised inside {package} ({place}), called from this line of yours.",
    zh_cn="它是在你的这一行所调用的 {package}（{place}）内部抛出的。",
)
_IN_PLACE = Translated(
    en="It was raised in {place}, called from this line of yours.",
    zh_cn="它是在你的这一行所调用的 {place} 中抛出的。",
)
_NO_TRACEBACK = Translated(
    en="The log has the message of this {type} and no traceback, so the line that raised it is not known.",
    zh_cn="日志中只有该 {type} 的消息而没有 traceback，因此不知道是哪一行抛出的。",
)
_REFUSED = Translated(
    en="{package} ({place}), called from this line of yours, refuses what it is given; its message says what.",
    zh_cn="你的这一行所调用的 {package}（{place}）拒绝了传入的内容；原因见消息。",
)
_ONLY_PACKAGE = Translated(
    en="{package} ({place}) raised this {type}; no line of your own code is in the call chain.",
    zh_cn="{package}（{place}）抛出了该 {type}；调用链中没有你自己的代码。",
)
_IN_WORKER = Translated(
    en="It happened in a DataLoader worker, while it made a batch.",
    zh_cn="它发生在 DataLoader worker 准备批次的过程中。",
)
_TURNED_INTO = Translated(
    en="It began as this {inner}, which was then turned into the {outer} that ended the rank.",
    zh_cn="起因是该 {inner}，随后被转换为终止该 rank 的 {outer}。",
)
_OF_A_GROUP = Translated(
    en="It is the first of {count} exceptions that ended together as a group.",
    zh_cn="它是作为异常组一起结束的 {count} 个异常中的第一个。",
)
