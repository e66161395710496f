"""Ask the ranks of a run for a closer look, from any process that may read and write the run's folder."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.directory import cache_directory, is_going_on
from ranksafe.runs.explain.evidence import frames_from, parse_entry
from ranksafe.runs.explain.remote_paths import local_files
from ranksafe.runs.model import Frame
from ranksafe.runs.watch.beat import Beat, Wait, read_beat, waits_from

LONGEST_ANSWER_SECONDS = 4.0
"""Ranks look for questions once a second."""
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class ThreadStack:
    """One thread of a rank."""

    name: str
    is_main: bool
    frames: tuple[Frame, ...]
    """Outermost first."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one rank answered; of a rank that did not, what its last heartbeat told."""

    rank: int
    time: float
    """Seconds since the epoch, by the rank's clock."""
    threads: tuple[ThreadStack, ...]
    """The main thread first."""
    waits: tuple[Wait, ...]
    recorder: tuple[Mapping[str, Any], ...] | None = None
    """torch's flight recorder, oldest entry first; None: not asked for, or there is none."""
    answered: bool = True
    steps: int = 0


def ask(directory: Path, *, recorder: bool = False) -> str:
    """Put the question to every rank of a run; returns its id. Raises OSError where the folder cannot be written."""
    question = {"id": secrets.token_hex(8), "recorder": recorder}
    temporary = directory / f"look.{os.getpid()}.new"
    temporary.write_text(json.dumps(question), encoding="utf-8")
    temporary.replace(directory / "look")
    return str(question["id"])


def answers(directory: Path, question: str) -> dict[int, Look]:
    """Who has answered so far."""
    found: dict[int, Look] = {}
    for path in sorted(directory.glob("rank*.look")):
        rank = _rank_of(path)
        try:
            data = parse_entry(path.read_text(encoding="utf-8", errors="replace"))
            if rank is not None and data.get("id") == question:
                found[rank] = _look(rank, data)
        except (OSError, KeyError, TypeError, ValueError):
            continue
    return found


def look_at(directory: Path) -> list[Look]:
    """Ask and wait: every rank that has a heartbeat and has not ended, in the order of ranks. Raises OSError."""
    question = ask(directory)
    end = time.monotonic() + LONGEST_ANSWER_SECONDS
    beats, found = _beats(directory), answers(directory, question)
    # Ranks that have just begun have no heartbeat yet.
    while (not beats or len(found) < len(beats)) and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
        beats, found = _beats(directory), answers(directory, question)
    looks = []
    for rank, beat in sorted(beats.items()):
        look = found.get(rank) or _last_seen(rank, beat)
        looks.append(
            Look(rank, look.time, look.threads, look.waits, None, look.answered, beat.steps)
        )
    return looks


def with_files_of_here(
    looks: Sequence[Look], directory: Path
) -> tuple[list[Look], list[Translated]]:
    """The looks with files and lines as they are here, for a run on another machine; what is said of edited files."""
    files = local_files(directory)
    if files is None:
        return list(looks), []
    found = []
    for look in looks:
        # Answers name files of here already, heartbeats do not.
        frames = files.followed if look.answered else files.frames
        threads = tuple(replace(each, frames=frames(each.frames)) for each in look.threads)
        found.append(replace(look, threads=threads))
    return found, files.said


def runs_going_on() -> list[Path]:
    """The folders of this user's runs that have not ended, the newest last."""
    runs = cache_directory() / "runs"
    if not runs.is_dir():
        return []
    return sorted(entry for entry in runs.iterdir() if entry.is_dir() and is_going_on(entry))


def _beats(directory: Path) -> dict[int, Beat]:
    found = {}
    for path in directory.glob("rank*.beat"):
        rank, beat = _rank_of(path), read_beat(path)
        if rank is not None and beat is not None and not _has_ended(path.with_suffix(".jsonl")):
            found[rank] = beat
    return found


def _has_ended(journal: Path) -> bool:
    try:
        lines = journal.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(parse_entry(line).get("event") in ("exit", "os-exit") for line in lines[-5:])


def _rank_of(path: Path) -> int | None:
    number = path.stem.removeprefix("rank")
    return int(number) if number.isdigit() else None


def _look(rank: int, data: Mapping[str, Any]) -> Look:
    recorder: Sequence[Mapping[str, Any]] | None = data.get("recorder")
    return Look(
        rank=rank,
        time=float(data["time"]),
        threads=tuple(
            ThreadStack(str(each["name"]), bool(each["main"]), frames_from(each["frames"]))
            for each in data["threads"]
        ),
        waits=waits_from(data.get("collectives") or {}),
        recorder=None if recorder is None else tuple(recorder),
    )


def _last_seen(rank: int, beat: Beat) -> Look:
    main = ThreadStack("MainThread", True, beat.frames)
    return Look(rank, beat.time, (main,), beat.waits, answered=False)
