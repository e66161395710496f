"""What the ranks do right now, for people: one short sentence per rank, their speed, and who is waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.explain.locate import UserCode, innermost_user_frame
from ranksafe.runs.model import RankState
from ranksafe.runs.watch.standing import (
    Kind,
    Standing,
    WatchedRank,
    ranks_text,
)

_WINDOW_SECONDS = 20.0
_LEAST_SECONDS = 20.0
_LEAST_SHARE = 0.1
_LEAST_TIMES = 3
_LONGEST_GAP_SECONDS = 3.0
_SHORT_WAIT_SECONDS = 2.0
_UNHEARD_SECONDS = 15.0


@dataclass(slots=True)
class _Speed:
    """Steps of the last seconds."""

    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, time: float, steps: int) -> None:
        if not self.seen or time > self.seen[-1][0]:
            self.seen.append((time, steps))
        while len(self.seen) > 2 and self.seen[0][0] < time - _WINDOW_SECONDS:
            self.seen.popleft()

    @property
    def per_second(self) -> float | None:
        """Steps per second; None before the second step."""
        if len(self.seen) < 2 or self.seen[-1][1] < 2:
            return None
        (start, first), (end, last) = self.seen[0], self.seen[-1]
        return (last - first) / (end - start)


class LiveView:
    """Keeps speeds, and how long each rank kept the others waiting."""

    def __init__(self, user_code: UserCode) -> None:
        self._user_code = user_code
        self._speeds: dict[int, _Speed] = {}
        self._waited_for: dict[int, float] = {}
        self._times: dict[int, int] = {}
        self._late: int | None = None
        self._trained = 0.0
        self._last = 0.0

    def states(
        self, ranks: Mapping[int, WatchedRank], standings: Mapping[int, Standing]
    ) -> list[RankState]:
        """One per rank, in their order."""
        now = max((each.beat.time for each in ranks.values() if each.beat), default=0.0)
        self._count(standings, ranks, now)
        return [self._state(ranks[rank], standings[rank], now) for rank in sorted(ranks)]

    def stragglers(self) -> list[Translated]:
        """Ranks that the others waited for a good part of the training, with figures; at most one."""
        if not self._waited_for or self._trained < _LEAST_SECONDS:
            return []
        rank, seconds = max(self._waited_for.items(), key=lambda item: item[1])
        rest = sum(self._waited_for.values()) - seconds
        again_and_again = self._times[rank] >= _LEAST_TIMES
        if not again_and_again or seconds < max(_LEAST_SHARE * self._trained, 2 * rest):
            return []
        percent = round(100 * seconds / self._trained)
        return [
            _STRAGGLER.filled(
                rank=rank, seconds=round(seconds), whole=round(self._trained), percent=percent
            )
        ]

    def _count(
        self, standings: Mapping[int, Standing], ranks: Mapping[int, WatchedRank], now: float
    ) -> None:
        """One sample a second: who works while all the others wait."""
        passed = min(now - self._last, _LONGEST_GAP_SECONDS) if self._last else 0.0
        if passed < 0.5 and self._last:
            return
        self._last = now
        training = [rank for rank, each in ranks.items() if each.beat and each.beat.steps]
        if len(training) < max(2, len(standings)):
            return
        self._trained += passed
        working = [rank for rank, each in standings.items() if each.kind is Kind.WORKS]
        waiting = [rank for rank, each in standings.items() if each.kind is Kind.WAITS]
        alone = len(working) == 1 and len(waiting) == len(standings) - 1
        late = working[0] if alone else None
        if late is not None:
            self._waited_for[late] = self._waited_for.get(late, 0.0) + passed
            self._times[late] = self._times.get(late, 0) + int(late != self._late)
        self._late = late

    def _state(self, rank: WatchedRank, standing: Standing, now: float) -> RankState:
        beat = rank.beat
        if beat is None:
            kind = "failed" if rank.raised else "ended" if rank.ended_at else "starting"
            return RankState(rank.rank, kind, _OF_KIND[kind])
        speed = self._speeds.setdefault(rank.rank, _Speed())
        speed.add(beat.time, beat.steps)
        if rank.raised or standing.kind is Kind.ENDED:
            kind = "failed" if rank.raised else "ended"
            return RankState(rank.rank, kind, _OF_KIND[kind], beat.steps)
        seconds = max(0, round(now - standing.since))
        frames = standing.wait.frames if standing.wait and standing.wait.frames else beat.frames
        place = innermost_user_frame(self._user_code.marked(frames))
        where = "" if place is None else f" ({Path(place.filename).name}:{place.line})"
        rate = speed.per_second
        if rank.unheard_seconds >= _UNHEARD_SECONDS:
            silent = round(rank.unheard_seconds)
            text = _UNHEARD.filled(where=where, seconds=silent)
            return RankState(rank.rank, "still", text, beat.steps, rate, silent)
        if standing.wait is not None and now - standing.since >= _SHORT_WAIT_SECONDS:
            text = _WAITS.filled(call=standing.wait.name, where=where, seconds=seconds)
            return RankState(rank.rank, "waits", text, beat.steps, rate, seconds)
        if standing.kind is Kind.STILL:
            text = _STILL.filled(where=where, seconds=seconds)
            return RankState(rank.rank, "still", text, beat.steps, rate, seconds)
        if beat.steps:
            pace = "" if rate is None else f", {rate:.1f}/s" if rate >= 1 else f", {rate:.2f}/s"
            text = _STEP.filled(step=beat.steps, pace=pace)
            return RankState(rank.rank, "runs", text, beat.steps, rate)
        return RankState(rank.rank, "runs", _RUNS.filled(where=where), 0)


def together(states: Sequence[RankState]) -> list[tuple[str, Translated]]:
    """Ranks that do the same in one entry: who, what."""
    groups: dict[Translated, list[int]] = {}
    for state in states:
        groups.setdefault(state.text, []).append(state.rank)
    return [(ranks_text(ranks), text) for text, ranks in groups.items()]


def in_one_line(states: Sequence[RankState]) -> Translated:
    """Everything in one line."""
    parts = together(states)
    return Translated(
        " · ".join(f"{who}: {text.en}" for who, text in parts),
        " · ".join(f"{who}：{text.zh_cn}" for who, text in parts),
    )


_OF_KIND = {
    "starting": Translated("starting", "正在启动"),
    "failed": Translated("failed", "已失败"),
    "ended": Translated("finished", "已结束"),
}
_WAITS = Translated(
    en="waits in {call}{where} since {seconds} s", zh_cn="在 {call}{where} 中已等待 {seconds} 秒"
)
_STILL = Translated(en="stands still{where} since {seconds} s", zh_cn="停住{where} 已 {seconds} 秒")
_UNHEARD = Translated(
    en="no sign of life{where} since {seconds} s", zh_cn="没有动静{where}已 {seconds} 秒"
)
_STEP = Translated(en="step {step}{pace}", zh_cn="第 {step} 步{pace}")
_RUNS = Translated(en="running{where}", zh_cn="运行中{where}")
_STRAGGLER = Translated(
    en="the other ranks waited for rank {rank} during {percent} % of the training ({seconds} s of {whole} s): "
    "it has more to do, or a slower device, disk or data",
    zh_cn="训练时间的 {percent}%（{whole} 秒中的 {seconds} 秒）里其他 rank 都在等待 rank {rank}："
    "它的工作更多，或者设备、磁盘或数据更慢",
)
