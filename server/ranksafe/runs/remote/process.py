"""A run on another host as a process of ours: followed over a connection that may break and come back."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ranksafe.localization import Language, Translated
from ranksafe.runs.directory import release
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.explain.out_of_sight import DETACHED, HOST_LOST, HOST_RESTARTED
from ranksafe.runs.hosts.errors import HostLost
from ranksafe.runs.hosts.piped import CONNECTION_LOST
from ranksafe.runs.hosts.protocol import Conversation, Host
from ranksafe.runs.on_host.follow import QUESTION
from ranksafe.runs.output import OutputFollower
from ranksafe.runs.remote.mirror import Garbled, Mirror
from ranksafe.runs.remote.reconnection import Reconnection, note_unseen
from ranksafe.runs.remote.record import RemoteRun, write_record
from ranksafe.runs.targets.protocol import Output

logger = logging.getLogger(__name__)

LOST_LEASE_SECONDS: Final = 30.0
"""With ``--stop-when-lost``: how long a run goes on without a sign of life from here."""
_BEAT_SECONDS = 5.0
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_FULL_DISK_BYTES = 1 << 20
_REFUSED_SECONDS = 120.0


class RemoteProcess:
    """A run that goes on whether or not it is seen. Used by one thread; only `cancel` may be called from others."""

    def __init__(
        self,
        host: Host,
        run: RemoteRun,
        directory: Path,
        conversation: Conversation | None,
        language: Language,
    ) -> None:
        self._host = host
        self._run = run
        self._directory = directory
        self._conversation = conversation
        self._language = language
        self._mirror = self._new_mirror()
        self._output = OutputFollower(directory, language=language)
        self._said: list[Output] = []
        self._beat_at = 0.0
        self._wants_end = False
        self._asked_to_end = False
        self._left_alone = ""
        self._lost_at: float | None = None
        self._pause = _FIRST_PAUSE_SECONDS
        self._next_try = 0.0
        self._reconnection: Reconnection | None = None
        self._failed = ""
        self._asked = 0

    def follow(self) -> Sequence[Output]:
        """What came since the last call; what is to be said of the connection comes as lines of stream ``status``."""
        self._turn()
        said, self._said = self._said, []
        return [*said, *self._output.new_lines(final=self.is_over())]

    def is_over(self) -> bool:
        """Whether the run has ended, or nobody here looks at it any more."""
        return self._has_ended or bool(self._left_alone)

    def cancel(self) -> None:
        """Have every process of the run ended; without a connection: stop waiting for one."""
        self._wants_end = True

    def collect(self) -> Path:
        """End the connection; the evidence is here already."""
        if self._has_ended:
            with contextlib.suppress(OSError):
                write_record(replace(self._run, finished=True), self._directory)
        self.look_away()
        return self._directory

    def look_away(self) -> None:
        """End the connection; the run goes on, and its end is not counted as seen."""
        if self._reconnection is not None:
            self._reconnection.abandon()
        if self._conversation is not None:
            self._conversation.close()
        note_unseen(self._directory, None)
        release(self._directory)

    @property
    def _has_ended(self) -> bool:
        return self._mirror.over is not None or self._mirror.missing

    @property
    def is_seen_to_go_on(self) -> bool:
        """Whether the host has said so, after everything that was there when it was asked, and is connected."""
        return self._mirror.caught_up and self._conversation is not None and not self._has_ended

    @property
    def status(self) -> str:
        """As of every process, or one of `out_of_sight`: the run is not seen from here, or went down with its host."""
        if self._left_alone:
            return self._left_alone
        report = self.report()
        status = str(report.get("status", "running"))
        if status != "running" or not self.is_over():
            return status
        return HOST_RESTARTED if (self._mirror.over or {}).get("restarted") is True else "lost"

    def report(self) -> dict[str, Any]:
        """The supervisor's last word, as far as it has come; empty before the first."""
        try:
            text = (self._directory / "supervisor.json").read_text(encoding="utf-8")
            value = json.loads(text)
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def wait_for_start(self) -> None:
        """Until the supervisor has spoken. Raises RunNotPossible when it could not start the run."""
        end = time.monotonic() + _REFUSED_SECONDS
        while not self.report() and not self.is_over() and time.monotonic() < end:
            self._turn()
            if self._mirror.refused is not None:
                reason = self._mirror.refused
                raise RunNotPossible(_REFUSED.filled(host=self._host.name, reason=reason))
            if self._failed:
                raise RunNotPossible(_REFUSED.filled(host=self._host.name, reason=self._failed))
            if self._lost_at is not None:
                return
            time.sleep(0.01)
        report = self.report()
        if report.get("status") != "failed-to-start":
            return
        if "devices_free" in report:
            free = report["devices_free"]
            raise RunNotPossible(_TAKEN.filled(host=self._host.name, free=free))
        raise RunNotPossible(_REFUSED.filled(host=self._host.name, reason=report.get("error", "?")))

    def _new_mirror(self) -> Mirror:
        return Mirror(self._directory, self._run.project, self._run.root)

    # -- the connection

    def _turn(self) -> None:
        if self.is_over():
            return
        if self._conversation is None:
            self._try_again()
            return
        ended = self._conversation.returncode is not None
        try:
            self._mirror.take(self._conversation.receive())
        except Garbled:
            ended = True
        if self._lost_at is not None and self._mirror.heard:
            self._say(_FOUND_AGAIN.filled(host=self._host.name))
            self._lost_at, self._pause = None, _FIRST_PAUSE_SECONDS
            note_unseen(self._directory, None)
        if self._mirror.over is not None:
            self._tell_of_end(self._mirror.over)
        elif self._mirror.missing:
            self._say(_MISSING.filled(host=self._host.name))
        elif ended:
            self._lose()
        else:
            self._speak()

    def _speak(self) -> None:
        """Signs of life, and the wish to end."""
        assert self._conversation is not None
        now = time.monotonic()
        try:
            if self._wants_end and not self._asked_to_end:
                self._conversation.send(b"c\n")
                self._asked_to_end = True
            elif now - self._beat_at > _BEAT_SECONDS:
                self._conversation.send(b"b\n")
                self._beat_at = now
            question = self._question()
            if question:
                self._conversation.send(b"q" + question + b"\n")
        except HostLost:
            return  # its end is noticed in the next turn

    def _question(self) -> bytes:
        """What was put to the ranks here since the last time (`runs.watch.stacks`), for their host."""
        try:
            stamp = (self._directory / QUESTION).stat().st_mtime_ns
            if stamp == self._asked:
                return b""
            self._asked = stamp
            value = json.loads((self._directory / QUESTION).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return b""
        return json.dumps(value).encode()

    def _lose(self) -> None:
        assert self._conversation is not None
        reason = (self._conversation.complaints.strip().splitlines() or [""])[-1]
        if self._conversation.returncode not in (0, CONNECTION_LOST):
            self._failed = reason or f"status {self._conversation.returncode}"
        self._conversation.close()
        self._conversation = None
        self._asked_to_end = False
        if self._lost_at is None:
            self._lost_at = time.monotonic()
            note_unseen(self._directory, time.time())
            sentence = _LOST_STOPS if self._run.stop_when_lost else _LOST
            hours = f"{self._run.lease_seconds / 3600:g}"
            self._say(sentence.filled(host=self._host.name, reason=reason or "?", hours=hours))
        self._next_try = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)

    def _try_again(self) -> None:
        now = time.monotonic()
        gone = now - (self._lost_at or now)
        if self._wants_end or gone > self._run.patience_seconds:
            self._left_alone = DETACHED if self._wants_end else HOST_LOST
            sentence = _LEFT_ALONE if self._wants_end else _GIVEN_UP
            minutes = f"{gone / 60:.1f}"
            run_id = self._directory.name
            self._say(sentence.filled(host=self._host.name, run=run_id, minutes=minutes))
            return
        if self._reconnection is None and now >= self._next_try:
            self._reconnection = Reconnection(self._host, self._run, self._directory)
        if self._reconnection is None or not self._reconnection.done:
            return
        self._conversation = self._reconnection.conversation
        refused = self._reconnection.refused
        self._reconnection = None
        if self._conversation is None:
            logger.info("%s is not reached: %s", self._host.name, refused)
            self._next_try = now + self._pause
            self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
        else:
            self._mirror = self._new_mirror()
            self._beat_at = 0.0

    def _tell_of_end(self, over: dict[str, Any]) -> None:
        if self.report().get("lease_over"):
            self._say(_LEASE_OVER.filled(host=self._host.name))
        free = over.get("free_bytes")
        if isinstance(free, int) and free < _FULL_DISK_BYTES:
            self._say(_DISK_FULL.filled(host=self._host.name, folder=self._run.directory))

    def _say(self, text: Translated) -> None:
        self._said.append(Output(None, "status", text.in_language(self._language)))


_REFUSED = Translated(
    en="The run cannot start on {host}: {reason}", zh_cn="无法在 {host} 上启动运行：{reason}"
)
_TAKEN = Translated(
    en="The free GPUs of {host} were taken while the run was prepared: {free} are left. Try again, or ask for fewer.",
    zh_cn="准备运行期间，{host} 的空闲 GPU 被占用，仅剩 {free} 个。请重试或减少数量。",
)
_LOST = Translated(
    en="the connection to {host} is lost ({reason}); the run goes on there, for at most {hours} h, and is sought again",
    zh_cn="与 {host} 的连接已断开（{reason}）；运行在那里继续，最长 {hours} 小时，正在重新连接",
)
_LOST_STOPS = Translated(
    en="the connection to {host} is lost ({reason}); unless it comes back, the run is ended there within a minute",
    zh_cn="与 {host} 的连接已断开（{reason}）；若未恢复，运行将在一分钟内在那里被结束",
)
_FOUND_AGAIN = Translated(en="connected to {host} again", zh_cn="已重新连接到 {host}")
_LEFT_ALONE = Translated(
    en="no longer looking at the run on {host}, which goes on: `ranksafe attach {run}` comes back to it",
    zh_cn="不再关注 {host} 上的运行，它仍在继续：可用 `ranksafe attach {run}` 重新查看",
)
_GIVEN_UP = Translated(
    en="{host} did not come back within {minutes} minutes and is sought no longer: once it can be reached, "
    "`ranksafe attach {run}` tells how the run went",
    zh_cn="{host} 在 {minutes} 分钟内没有恢复，不再寻找：可以访问之后，用 `ranksafe attach {run}` 查看运行的情况",
)
_MISSING = Translated(
    en="{host} no longer has the run's folder", zh_cn="{host} 上已没有此次运行的文件夹"
)
_LEASE_OVER = Translated(
    en="{host} ended the run: nobody here had looked at it for too long",
    zh_cn="{host} 结束了运行：太久没有人查看",
)
_DISK_FULL = Translated(
    en="the disk of {host} that holds {folder} is full: what the run wrote last may be missing",
    zh_cn="{host} 上存放 {folder} 的磁盘已满：运行最后写入的内容可能缺失",
)
