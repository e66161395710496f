"""``ranksafe stacks``: where every rank of a run that goes on is at this moment, and what it waits for."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranksafe.cli.output_options import add_output_arguments
from ranksafe.cli.terminal import fail, harmless, note, style_for
from ranksafe.localization import Language, Translated
from ranksafe.runs.attach import seen_for_a_while, waiting_runs
from ranksafe.runs.directory import cache_directory, is_going_on
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.remote.reconnection import unseen_since
from ranksafe.runs.watch.stacks import (
    Look,
    ThreadStack,
    look_at,
    runs_going_on,
    with_files_of_here,
)
from ranksafe.runs.watch.stacks_text import described

_USED_WRONGLY = 2
_RUN = Translated(
    "the run's id (default: the one run that is going on)", "运行的 id（默认：正在进行的那个运行）"
)
_ALL = Translated("all threads, not only the main one", "所有线程，而不仅是主线程")


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """RUN, and what of it is shown."""
    parser.add_argument("run", nargs="?", metavar="RUN", help=_RUN.in_language(language))
    parser.add_argument("--all-threads", action="store_true", help=_ALL.in_language(language))
    add_output_arguments(parser, language)


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Ask and print; 0 there were ranks, 1 there were none, 2 no such run."""
    directory = _directory(arguments.run, language)
    if directory is None:
        return _USED_WRONGLY
    try:
        looks, edited = _ask(directory, language)
    except RunNotPossible as error:
        return fail(error.message.in_language(language), _USED_WRONGLY)
    except OSError as error:
        message = _CANNOT_ASK.filled(reason=error.strerror).in_language(language)
        return fail(message, _USED_WRONGLY)
    for sentence in edited:
        note(sentence.in_language(language))
    user_code = UserCode([Path("/")], anywhere=True)
    if arguments.output_format == "json":
        ranks = [_as_json(look, user_code, arguments.all_threads) for look in looks]
        print(json.dumps({"run_id": directory.name, "ranks": ranks}, ensure_ascii=False, indent=2))
    else:
        style = style_for(arguments.color, sys.stdout)
        for look in looks:
            lines = described(
                look, user_code, language, all_threads=arguments.all_threads, paint=style.paint
            )
            print(harmless("\n".join(lines)) + "\n")
    if not looks:
        note(_NO_RANKS.filled(run=directory.name).in_language(language))
    return 0 if looks else 1


def _ask(directory: Path, language: Language) -> tuple[list[Look], list[Translated]]:
    """What the ranks answer, with files and lines of here. Raises RunNotPossible and OSError."""
    if is_going_on(directory):
        since = unseen_since(directory)
        if since is not None:
            seconds = max(0, round(time.time() - since))
            note(_UNSEEN.filled(seconds=seconds).in_language(language))
        looks = look_at(directory)
    else:
        # Nobody follows it, so nobody would pass the question on.
        with seen_for_a_while(directory, note, language):
            looks = look_at(directory)
    return with_files_of_here(looks, directory)


def _directory(run: str | None, language: Language) -> Path | None:
    """The folder of the run that is meant; None, and said why, where that is not clear."""
    waiting = [cache_directory() / "runs" / each for each in waiting_runs()]
    followed = runs_going_on()
    going_on = [*followed, *reversed(waiting)]
    if run is not None:
        chosen = cache_directory() / "runs" / run
        if chosen in going_on:
            return chosen
        fail(_NO_SUCH.filled(run=run, runs=_listed(going_on)).in_language(language), 0)
        return None
    # What nobody follows may have ended long ago: it is meant only where it is named, or there is nothing else.
    candidates = followed or going_on
    if len(candidates) == 1:
        return candidates[0]
    message = _SEVERAL.filled(runs=_listed(going_on)) if going_on else _NOTHING
    fail(message.in_language(language), 0)
    return None


def _listed(runs: Sequence[Path]) -> str:
    return ", ".join(path.name for path in runs) or "-"


def _as_json(look: Look, user_code: UserCode, all_threads: bool) -> dict[str, Any]:
    threads = look.threads if all_threads else look.threads[:1]
    return {
        "rank": look.rank,
        "answered": look.answered,
        "steps": look.steps,
        "waits": [
            {
                "call": wait.call,
                "seconds": round(look.time - wait.since, 1),
                "group": wait.group,
                "ranks": list(wait.ranks),
                "number": wait.number,
                "peers": None if wait.peers is None else list(wait.peers),
            }
            for wait in look.waits
        ],
        "threads": [_thread_json(thread, user_code) for thread in threads],
    }


def _thread_json(thread: ThreadStack, user_code: UserCode) -> dict[str, Any]:
    return {
        "name": thread.name,
        "main": thread.is_main,
        "frames": [
            {
                "filename": frame.filename,
                "line": frame.line,
                "function": frame.function,
                "source": frame.source,
                "in_user_code": frame.in_user_code,
            }
            for frame in user_code.marked(thread.frames)
        ],
    }


_NOTHING = Translated("no run is going on", "没有正在进行的运行")
_SEVERAL = Translated(
    "several runs are going on, name one: {runs}", "有多个运行正在进行，请指定一个：{runs}"
)
_NO_SUCH = Translated(
    "no run of that name is going on: {run} (going on: {runs})",
    "没有名为 {run} 的正在进行的运行（正在进行：{runs}）",
)
_UNSEEN = Translated(
    "the run's host is not reached since {seconds} s: this is where its ranks were seen last",
    "已有 {seconds} 秒无法连接运行所在的主机：以下是各 rank 最后一次被观察到的位置",
)
_NO_RANKS = Translated(
    "run {run} has no rank yet, or none any more", "运行 {run} 还没有或已没有 rank"
)
_CANNOT_ASK = Translated(
    "the run's folder cannot be written: {reason}", "无法写入运行文件夹：{reason}"
)
