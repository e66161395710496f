"""Looks at a run's heartbeats about twice a second: tells what the ranks do, and when they can never go on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ranksafe.localization import Language, Translated
from ranksafe.runs.explain.collective_order import (
    Calls,
    Group,
    Mismatch,
    calls_of,
    first_mismatch,
    groups_made,
)
from ranksafe.runs.explain.evidence import frames_from, parse_entry
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.explain.remote_paths import LocalFiles, local_files
from ranksafe.runs.model import Failure, Frame, RankState
from ranksafe.runs.watch import stacks
from ranksafe.runs.watch.beat import Beat, Wait, read_beat
from ranksafe.runs.watch.deadlock import stuck_ranks
from ranksafe.runs.watch.hang import explained, stand_of
from ranksafe.runs.watch.live import LiveView
from ranksafe.runs.watch.recorder import open_waits
from ranksafe.runs.watch.standing import (
    Kind,
    Standing,
    WatchedRank,
    ranks_text,
)
from ranksafe.runs.watch.unheard import Unheard

_LOOK_SECONDS = 0.5
_SUSPECT_SECONDS = 2.0
"""For how long ranks must have waited in vain before they are asked where they are."""
_SETTLED_SECONDS = 4.0
"""The same before they are said to hang; a lost connection shows within it."""
_LOST_SECONDS = 1.0
"""After the end of a rank; those that waited for it have lost their connection by then, where they notice it."""
_AFTER_A_FAILURE_SECONDS = 25.0
"""Launchers end the other ranks once one has failed; this is for when they do not."""
_OLD_SECONDS = 6.0
_QUIET_DEVICE_SECONDS = 12.0
_ANSWER_SECONDS = 3.0
_UNHEARD = "-"


@dataclass(slots=True)
class Hang:
    """Ranks that wait for each other in vain."""

    sentence: Translated
    failures: tuple[Failure, ...]
    """Empty where a rank had failed before: then that is what has to be told."""
    mismatch: Mismatch | None = None
    """The first collective that two of them called differently, if they did."""


_FAILED_AND_STAYED = Translated(
    en="{ranks} failed and did not end, the others wait for it: the run is being stopped",
    zh_cn="{ranks} 已失败但没有结束，其他 rank 在等待它：正在停止运行",
)


@dataclass(slots=True)
class Watchdog:
    """Of one run. `turn` is called often and does little; nothing is ever written but questions to the ranks."""

    directory: Path
    user_code: UserCode
    language: Language
    own_machine: bool = False
    """Whether the ranks are processes of this machine, which the system can be asked about."""
    ranks: dict[int, WatchedRank] = field(default_factory=dict)
    hang: Hang | None = None
    _stamps: dict[int, int] = field(default_factory=dict)
    _looked_at: float = 0.0
    _suspects: frozenset[int] = frozenset()
    _question: str = ""
    _asked_at: float = 0.0
    _device_asked_at: float = -1e9
    _device_question: str = ""
    _live: LiveView | None = None
    _files: LocalFiles | None = None
    _calls: dict[int, Mapping[Group, Calls]] = field(default_factory=dict)
    _compared: set[tuple[int, float]] = field(default_factory=set)
    _unheard: Unheard = field(default_factory=Unheard)

    def heard(self, rank: int | None, entry: Mapping[str, Any]) -> None:
        """A line of a rank's journal."""
        if rank is None:
            return
        watched = self.ranks.setdefault(rank, WatchedRank(rank))
        event = entry.get("event")
        if event == "start" and self.own_machine and isinstance(entry.get("pid"), int):
            self._unheard.started(rank, entry["pid"])
        if event in ("exit", "os-exit"):
            watched.ended_at = float(entry.get("time", 0.0))
            asked = entry["asked"] if isinstance(entry.get("asked"), dict) else entry
            watched.end_frames = frames_from(asked.get("frames"))
            watched.ended_well = event == "exit" and not asked.get("status")
        if event == "exception" and not entry.get("thread"):
            watched.raised = True

    def turn(self) -> bool:
        """Look, if it is time to; whether something may have changed."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return False
        self._looked_at = now
        heard = self._read()
        if not heard:
            return False
        self._unheard.look(heard, now)
        for rank, watched in self.ranks.items():
            watched.unheard_seconds = self._unheard.seconds(rank)
        self._judge(now)
        return True

    def states(self) -> list[RankState]:
        """What each rank does."""
        if self._live is None:
            self._live = LiveView(self.user_code)
        return self._live.states(self.ranks, self._standings())

    def stragglers(self) -> list[Translated]:
        """For the end of the run."""
        return [] if self._live is None else self._live.stragglers()

    def _read(self) -> set[int]:
        """The ranks that told something new."""
        changed = set()
        for path in self.directory.glob("rank*.beat"):
            number = path.stem.removeprefix("rank")
            if not number.isdigit():
                continue
            rank = int(number)
            try:
                stamp = path.stat().st_mtime_ns
            except OSError:
                continue
            if self._stamps.get(rank) == stamp:
                continue
            beat = read_beat(path)
            if beat is not None:
                self._stamps[rank] = stamp
                self.ranks.setdefault(rank, WatchedRank(rank)).update(self._with_local_files(beat))
                changed.add(rank)
        return changed

    def _with_local_files(self, beat: Beat) -> Beat:
        """A run on another machine names files there."""
        if self._files is None:
            self._files = local_files(self.directory)
        files = self._files
        if files is None:
            return beat
        waits = tuple(replace(wait, frames=files.frames(wait.frames)) for wait in beat.waits)
        return replace(beat, frames=files.frames(beat.frames), waits=waits)

    def _standings(self) -> dict[int, Standing]:
        return {rank: each.standing() for rank, each in self.ranks.items()}

    def _judge(self, now: float) -> None:
        standings = self._standings()
        self._remember_calls(standings)
        stuck = stuck_ranks(standings, self._call_of)
        if not stuck or not self._is_fresh(standings):
            if self.hang is not None and self.hang.failures and self._moves(standings):
                self.hang = None
            self._suspects = frozenset()
            self._ask_devices(now, standings)
            return
        newest = self._newest()
        settled = min(newest - standings[rank].since for rank in stuck)
        causes = frozenset(stuck) | frozenset(rank for found in stuck.values() for rank in found)
        failed = [rank for rank, each in self.ranks.items() if each.raised]
        if self.hang is not None:
            return
        if not failed and all(self._is_certain(rank, standings[rank]) for rank in causes):
            self.hang = self._explained(standings, stuck, sorted(causes), newest)
            return
        if settled < _SUSPECT_SECONDS:
            return
        if causes != self._suspects:
            self._suspects = causes
            self._question = self._ask()
            self._asked_at = now
            return
        if settled < (_AFTER_A_FAILURE_SECONDS if failed else _SETTLED_SECONDS):
            return
        answers = stacks.answers(self.directory, self._question)
        alive = {rank for rank in causes if self.ranks[rank].ended_at is None}
        if not alive <= answers.keys() and now - self._asked_at < _ANSWER_SECONDS:
            return
        if failed:
            text = _FAILED_AND_STAYED.filled(ranks=ranks_text(failed))
            self.hang = Hang(text, ())
            return
        standings.update(_named(standings, open_waits(answers)))
        self.hang = self._explained(standings, stuck, sorted(causes), newest)

    def _is_certain(self, rank: int, standing: Standing) -> bool:
        """Whether what a rank does at a deadlock needs no second look.

        Counted collectives of main threads only grow in number: who has not come to one by its latest beat had not
        when the other was in it, so that ranks which wait for each other in these do so at the same time, however
        old the beats. A rank that went on counts where it made another call.
        """
        wait = standing.wait
        if standing.kind is Kind.ENDED:
            gone = self._newest() - standing.since
            return self.ranks[rank].ended_well and gone >= _LOST_SECONDS
        if standing.kind is Kind.WORKS:
            return True
        if standing.kind is not Kind.WAITS or wait is None:
            return False
        is_counted = wait.group is not None and wait.number is not None and wait.peers is None
        # Ranks that make groups of other members at the same time may all come through, in a moment.
        return is_counted and bool(wait.ranks) and not wait.frames

    def _ask(self) -> str:
        """A question to all ranks; one that nobody hears (a full disk) stays without an answer."""
        try:
            return stacks.ask(self.directory, recorder=True)
        except OSError:
            return _UNHEARD

    def _explained(
        self,
        standings: Mapping[int, Standing],
        stuck: Mapping[int, frozenset[int]],
        involved: Sequence[int],
        newest: float,
    ) -> Hang:
        stands = []
        for rank in involved:
            frames = self.ranks[rank].frames
            passed_by = rank not in stuck and standings[rank].kind is Kind.WORKS
            if passed_by:
                frames = self._called_instead(rank, standings, stuck) or frames
            stands.append(
                stand_of(rank, standings[rank], frames, newest, self.user_code, passed_by=passed_by)
            )
        sentence, failures = explained(stands, self.user_code, self.language)
        called = {rank: self._read_calls(rank) for rank in self.ranks}
        return Hang(sentence, tuple(failures), first_mismatch(called, None))

    def _called_instead(
        self, rank: int, standings: Mapping[int, Standing], stuck: Mapping[int, frozenset[int]]
    ) -> tuple[Frame, ...]:
        """Where a rank made another call as the one that others wait in."""
        for waiting, waited in stuck.items():
            wait = standings[waiting].wait
            if rank in waited and wait is not None and wait.group is not None:
                for group, calls in self._calls.get(rank, {}).items():
                    if group.name == wait.group and wait.number in calls.kept:
                        return frames_from(calls.kept[wait.number].place)
        return ()

    def _call_of(self, rank: int, group: str, number: int) -> str | None:
        """From what was remembered when the suspicion arose."""
        for key, calls in self._calls.get(rank, {}).items():
            if key.name == group and number in calls.kept:
                return calls.kept[number].what
        return None

    def _remember_calls(self, standings: Mapping[int, Standing]) -> None:
        """Read what every rank has called, once for each wait that goes on although nobody is behind: it may be that
        a rank made another call as this number."""
        for rank, standing in standings.items():
            wait = standing.wait
            if wait is None or wait.number is None or (rank, wait.since) in self._compared:
                continue
            members = [
                each for other, each in standings.items() if not wait.ranks or other in wait.ranks
            ]
            if all(each.count(wait.group) >= wait.number for each in members):
                self._compared.add((rank, wait.since))
                self._calls = {other: self._read_calls(other) for other in self.ranks}

    def _read_calls(self, rank: int) -> Mapping[Group, Calls]:
        journal = self.directory / f"rank{rank}.jsonl"
        try:
            lines = journal.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return {}
        entries = [parse_entry(line) for line in lines]
        names = [each for each in entries if each.get("event") == "collective-name"]
        made = [each for each in entries if each.get("event") == "group-made"]
        return {**calls_of(journal.with_suffix(".collectives"), names), **groups_made(made)}

    def _newest(self) -> float:
        return max((each.beat.time for each in self.ranks.values() if each.beat), default=0.0)

    def _is_fresh(self, standings: Mapping[int, Standing]) -> bool:
        """Whether every rank that lives has told lately where it is; a judgement on old news would be none."""
        newest = self._newest()
        return all(
            each.beat is not None and newest - each.beat.time < _OLD_SECONDS
            for rank, each in self.ranks.items()
            if standings[rank].kind not in (Kind.ENDED, Kind.SILENT)
        )

    def _moves(self, standings: Mapping[int, Standing]) -> bool:
        return any(each.kind is Kind.WORKS for each in standings.values())

    def _ask_devices(self, now: float, standings: Mapping[int, Standing]) -> None:
        """Where nothing changes on any rank while CUDA is in use, a rank may wait on its device, with its processor
        spinning: torch's flight recorder knows."""
        if self._device_question:
            self._take_recorded(now)
            return
        living = [
            each for rank, each in self.ranks.items() if standings[rank].kind is not Kind.ENDED
        ]
        quiet = len(living) > 1 and all(
            each.beat is not None and each.beat.time - each.unchanged_since >= _QUIET_DEVICE_SECONDS
            for each in living
        )
        uses_cuda = any(each.beat is not None and each.beat.cuda for each in living)
        if quiet and uses_cuda and now - self._device_asked_at > 4 * _QUIET_DEVICE_SECONDS:
            self._device_question = self._ask()
            self._device_asked_at = now

    def _take_recorded(self, now: float) -> None:
        looks = stacks.answers(self.directory, self._device_question)
        known = {rank: look for rank, look in looks.items() if look.recorder is not None}
        if len(known) < len(self.ranks) and now - self._device_asked_at < 2 * _ANSWER_SECONDS:
            return
        self._device_question = ""
        for rank, (wait, counts) in open_waits(known).items():
            watched = self.ranks.get(rank)
            if watched is not None:
                watched.recorded_counts = counts
                watched.recorded = wait


def _named(
    standings: Mapping[int, Standing], recorded: Mapping[int, tuple[Wait | None, dict[str, int]]]
) -> dict[int, Standing]:
    """Waits that Python sees only from outside (a backward pass), with the collective the recorder names."""
    found = {}
    for rank, standing in standings.items():
        wait, (known, _) = standing.wait, recorded.get(rank, (None, {}))
        if wait is None or known is None or wait.group is not None or wait.peers is not None:
            continue
        if wait.name != known.name:
            call = f"{wait.name}({known.name})"
            found[rank] = replace(standing, wait=replace(wait, call=call))
    return found
