"""``ranksafe diagnose train.log``: explain a log by its text alone; ``-`` follows standard input."""

from __future__ import annotations

import argparse
import functools
import json
import queue
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from ranksafe.cli.output_options import add_output_arguments
from ranksafe.cli.render_failure import render_failure
from ranksafe.cli.terminal import Style, fail, harmless, style_for
from ranksafe.localization import Language, Translated
from ranksafe.runs.diagnosis.follow_log import FollowedLog, same_failure
from ranksafe.runs.explain.printed import ends_in_error
from ranksafe.runs.log_text.decode import is_binary
from ranksafe.runs.model import Failure
from ranksafe.runs.serialize import failure_json

_PIECE = 1 << 20
_ENOUGH = 16
"""Bytes that tell what a file is."""
_IDLE_SECONDS = 0.25
_TAIL_LINES = 5

_LOG_HELP = Translated(
    "the log; - for standard input, which is explained while it comes",
    "日志文件；- 表示标准输入，边读边解释",
)
_UNREADABLE = Translated("{path} cannot be read: {reason}", "无法读取 {path}：{reason}")
_BINARY = Translated(
    "{path} is no log: it is a binary or packed file (unpack it first)",
    "{path} 不是日志：它是二进制文件或压缩文件（请先解压）",
)
_STANDARD_INPUT = Translated("standard input", "标准输入")
_NOTHING = Translated("No failure was recognised in this log.", "在此日志中没有识别出故障。")
_UNKNOWN_ERROR = Translated(
    "This log ends in an error that is not recognised: no rank, line or cause can be told from it.",
    "此日志以未能识别的错误结尾：无法从中得知 rank、行号或原因。",
)
_EMPTY = Translated("This log is empty.", "此日志为空。")
_ENDS_WITH = Translated("It ends with:", "日志结尾：")
_AT_THE_END = Translated("At the end of the log:", "日志结束时：")


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `diagnose`."""
    parser.add_argument("log", metavar="LOG", help=_LOG_HELP.in_language(language))
    add_output_arguments(parser, language)


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Explain the log; 0 no failure in it, 1 a failure, 2 it cannot be read, 4 an error that is not recognised."""
    log = FollowedLog(language)
    style = style_for(arguments.color, sys.stdout)
    name = _STANDARD_INPUT if arguments.log == "-" else arguments.log
    try:
        if arguments.log == "-":
            live = arguments.output_format == "text"
            _follow(log, language, style if live else None)
        else:
            with Path(arguments.log).open("rb") as file:
                for data in _of_a_log(iter(functools.partial(file.read, _PIECE), b"")):
                    log.feed(data)
    except _NoLog:
        return fail(_BINARY.filled(path=name).in_language(language), 2)
    except OSError as error:
        message = _UNREADABLE.filled(path=name, reason=error.strerror)
        return fail(message.in_language(language), 2)
    failures = log.finish()
    is_unknown = not failures and ends_in_error(log.reader.last_lines(_TAIL_LINES))
    if arguments.output_format == "json":
        found = [failure_json(failure, language) for failure in failures]
        print(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        _print(failures, log, language, style, nothing=_UNKNOWN_ERROR if is_unknown else _NOTHING)
    return 1 if failures else 4 if is_unknown else 0


class _NoLog(Exception):
    """The first bytes are those of something else."""


def _of_a_log(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, if they begin as a log may; what comes byte by byte is typed. Raises _NoLog."""
    begins = True
    for piece in pieces:
        if begins and len(piece) >= _ENOUGH and is_binary(piece):
            raise _NoLog
        begins = begins and not piece
        yield piece


def _follow(log: FollowedLog, language: Language, style: Style | None) -> None:
    """Read standard input to its end or until Ctrl+C; with a style, print the failure once it is certain."""
    try:
        for data in _of_a_log(_as_it_comes(sys.stdin.buffer)):
            log.feed(data)
            if style is not None and (failure := log.certain()):
                print(render_failure(failure, language, style) + "\n", flush=True)
    except KeyboardInterrupt:
        pass


def _as_it_comes(file: BinaryIO) -> Iterator[bytes]:
    """The bytes as soon as they are there; nothing for a while is an empty piece."""
    pieces: queue.Queue[bytes | OSError | None] = queue.Queue(maxsize=8)

    def read() -> None:
        # Past the buffer: a thread that waits in it when Python ends holds its lock, and Python aborts.
        raw = getattr(file, "raw", file)
        try:
            while data := raw.read(_PIECE):
                pieces.put(data)
            pieces.put(None)
        except OSError as error:
            pieces.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            piece = pieces.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            yield b""
            continue
        if piece is None:
            return
        if isinstance(piece, OSError):
            raise piece
        yield piece


def _print(
    failures: list[Failure],
    log: FollowedLog,
    language: Language,
    style: Style,
    *,
    nothing: Translated,
) -> None:
    """``nothing``: what is said of a log that is not empty and has no failure."""
    if not failures:
        last = [*log.reader.last_lines(_TAIL_LINES), *filter(None, [log.reader.last_bar])]
        print((nothing if last else _EMPTY).in_language(language))
        if last:
            print(_ENDS_WITH.in_language(language))
            print(harmless("\n".join(f"  {style.paint('dim', line)}" for line in last)))
        return
    if log.announced is not None:
        if same_failure(log.announced, failures[0]):
            failures = failures[1:]
        else:
            print(_AT_THE_END.in_language(language))
    told = log.announced
    for failure in failures:
        print(render_failure(failure, language, style, told) + "\n")
        told = told or failure
