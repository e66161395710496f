"""A job, seen through its login node; it belongs to Slurm, and goes on when nobody looks."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ranksafe.localization import Language, Translated
from ranksafe.runs.directory import release
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.explain.evidence import parse_entry
from ranksafe.runs.explain.job_end import FILE as END_FILE
from ranksafe.runs.hosts.errors import HostLost
from ranksafe.runs.hosts.protocol import Conversation, Host
from ranksafe.runs.on_host import program
from ranksafe.runs.on_host.follow import QUESTION
from ranksafe.runs.output import OutputFollower
from ranksafe.runs.remote.record import read_record, write_record
from ranksafe.runs.targets.protocol import Output
from ranksafe.runs.targets.slurm.mirror import Mirror

_STATUSES = {
    "CANCELLED": "cancelled",
    "DEADLINE": "timed-out",
    "TIMEOUT": "timed-out",
    "UNKNOWN": "lost",
}
_AGAIN_SECONDS = (2.0, 5.0, 10.0, 30.0)
"""Between attempts to reach a login node that was lost."""
_WATCH = "targets.slurm.login_node.watch"
_COMMANDS = "targets.slurm.login_node.commands"
_TREE = "targets.slurm.login_node.tree"
_LONGEST_ENTRY = 16 * 2**20
LAUNCHER_FILE: Final = "launcher.stdout"
_LOG = re.compile(r"(node\.\d+|batch)\.log")
_LOGS_BYTES = 200_000
"""Of all nodes' logs together: what an explanation looks at."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is needed to find a job again."""

    number: str
    directory: str
    """Of the run, on the cluster."""
    poll_seconds: float
    commands: str
    """Folders with Slurm's commands, as in `Cluster`."""


class SlurmProcess:
    """A job that was submitted."""

    def __init__(self, host: Host, job: Job, directory: Path, language: Language) -> None:
        self._host = host
        self._job = job
        self._directory = directory
        self._language = language
        self._mirror = Mirror(directory)
        self._output = OutputFollower(directory, also=_LOG, language=language)
        self._conversation: Conversation | None = None
        self._rest = b""
        self._said: list[Output] = []
        self._over: dict[str, Any] | None = None
        self._goes_on = False
        self._attempts = 0
        self._next_attempt = 0.0
        self._left = False
        self._question_asked = 0
        self._wants_cancel = False
        self._told_cancel = False

    def follow(self) -> Sequence[Output]:
        """What Slurm says of the job, then new lines of the ranks and the nodes."""
        self._listen()
        lines = self._output.new_lines(final=self._over is not None)
        said, self._said = self._said, []
        return [*said, *lines]

    def is_over(self) -> bool:
        """Whether the job has ended and all it left is here."""
        return self._over is not None

    def cancel(self) -> None:
        """Have the job cancelled, at once or as soon as the login node is reached."""
        self._wants_cancel = True
        self._pass_cancel_on()

    def detach(self) -> None:
        """Look at it no more; the job goes on."""
        self._left = True
        self._disconnect()
        release(self._directory)

    def collect(self) -> Path:
        """The evidence is here; keep with it how Slurm says that the job ended."""
        self._disconnect()
        over = self._over or {}
        end = {**over, "job": self._job.number, "directory": self._job.directory}
        _write(self._directory / END_FILE, end)
        summary = {"status": self.status, "returncode": _returncode(over)}
        _write(self._directory / "supervisor.json", summary)
        logs = [*sorted(self._directory.glob("node.*.log")), self._directory / "batch.log"]
        with (self._directory / LAUNCHER_FILE).open("ab") as together:
            for log in (each for each in logs if each.is_file()):
                together.write(log.read_bytes()[-_LOGS_BYTES // len(logs) :])
        record = read_record(self._directory)
        if record is not None:
            write_record(replace(record, finished=True), self._directory)
        release(self._directory)
        return self._directory

    @property
    def is_seen_to_go_on(self) -> bool:
        """Whether Slurm has said so since the login node was reached."""
        return self._goes_on and self._over is None

    @property
    def status(self) -> str:
        """As the protocol has it, or `timed-out`. By whomever it was cancelled; what nobody knows any more is lost."""
        if self._over is None:
            return "running"
        state = str(self._over.get("state"))
        if state == "UNKNOWN" and self._over.get("script_status") is not None:
            return "exited"
        return _STATUSES.get(state, "exited")

    # -- the conversation with the login node

    def _listen(self) -> None:
        if self._over is not None or self._left:
            return
        conversation = self._conversation or self._connect()
        if conversation is None:
            return
        self._pass_question_on(conversation)
        ended = conversation.returncode is not None
        data = self._rest + conversation.receive()
        *lines, self._rest = data.split(b"\n")
        for line in lines:
            self._take(parse_entry(line.decode("utf-8", "replace")))
        if self._over is None and (ended or len(self._rest) > _LONGEST_ENTRY):
            self._lost(conversation.complaints.strip())

    def _connect(self) -> Conversation | None:
        if time.monotonic() < self._next_attempt:
            return None
        request = {
            "directory": self._job.directory,
            "job": self._job.number,
            "have": self._mirror.sizes(),
            "poll_seconds": self._job.poll_seconds,
            "commands": self._job.commands,
        }
        try:
            text = program(_WATCH, "on_host.request", _COMMANDS, _TREE)
            conversation = self._conversation = self._host.start(text, request)
        except RunNotPossible as error:
            self._lost(error.message.in_language(self._language))
            return None
        if self._attempts:
            self._say(_FOUND_AGAIN.filled(host=self._host.name))
        self._attempts = 0
        self._told_cancel = False
        self._pass_cancel_on()
        return conversation

    def _disconnect(self) -> None:
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            conversation.close()

    def _lost(self, reason: str) -> None:
        if self._attempts == 0:
            last = reason.splitlines()[-1] if reason else "?"
            self._say(_LOST.filled(host=self._host.name, reason=last, job=self._job.number))
        wait = _AGAIN_SECONDS[min(self._attempts, len(_AGAIN_SECONDS) - 1)]
        self._attempts += 1
        self._next_attempt = time.monotonic() + wait
        self._rest = b""
        self._goes_on = False
        self._disconnect()

    def _pass_cancel_on(self) -> None:
        conversation = self._conversation
        if not self._wants_cancel or self._told_cancel or conversation is None:
            return
        try:
            conversation.send(b"cancel\n")
        except HostLost:
            return
        self._told_cancel = True

    def _pass_question_on(self, conversation: Conversation) -> None:
        """What somebody here wants to know of the ranks (`ranksafe.runs.watch.stacks`)."""
        path = self._directory / QUESTION
        try:
            stamp = path.stat().st_mtime_ns
            if stamp == self._question_asked:
                return
            question = json.dumps(json.loads(path.read_text(encoding="utf-8")))
            conversation.send(b"look " + question.encode() + b"\n")
        except (OSError, ValueError, HostLost):
            return
        self._question_asked = stamp

    def _take(self, entry: Mapping[str, Any]) -> None:
        if isinstance(entry.get("state"), Mapping):
            self._goes_on = True
            self._say(_in_words(self._job.number, entry["state"]))
        elif isinstance(entry.get("over"), dict):
            self._over = entry["over"]
        elif entry.get("full") is True:
            self._say(_DISK_FULL.filled(host=self._host.name, folder=self._job.directory))
        else:
            self._mirror.take(entry)

    def _say(self, text: Translated) -> None:
        self._said.append(Output(None, "status", text.in_language(self._language)))


def _returncode(over: Mapping[str, Any]) -> int | None:
    """As a shell has it; None where it is not known. What Slurm ended was no success, whatever the script's status."""
    state, code, number = over.get("state"), over.get("exit"), over.get("signal")
    if state == "UNKNOWN":
        status = over.get("script_status")
        return status if isinstance(status, int) else None
    if isinstance(number, int) and number:
        return -number
    if state != "COMPLETED":
        return code if isinstance(code, int) and code else 1
    return 0


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


_LOST = Translated(
    en="{host} is not reached ({reason}); job {job} goes on, and it is tried again",
    zh_cn="无法连接 {host}（{reason}）；作业 {job} 会继续运行，稍后将重试",
)
_DISK_FULL = Translated(
    en="the disk of the cluster that holds {folder} is full (seen on {host}): what the job writes from now on may be "
    "missing",
    zh_cn="集群上存放 {folder} 的磁盘已满（在 {host} 上看到）：作业此后写入的内容可能缺失",
)
_FOUND_AGAIN = Translated(en="{host} is reached again", zh_cn="已重新连接 {host}")


def _in_words(job: str, state: Mapping[str, Any]) -> Translated:
    """``job``: its number; ``state``: as the login node's watcher tells it."""
    name, reason, position = state.get("state"), state.get("reason"), state.get("position")
    nodes = state.get("nodes") or []
    if name == "RUNNING" and nodes:
        return _RUNNING.filled(job=job, nodes=", ".join(str(node) for node in nodes))
    if name == "PENDING":
        why = _REASONS.get(str(reason), Translated(str(reason), str(reason)))
        waits = _WAITS.filled(job=job, reason=why)
        if position:
            waits = _POSITION.filled(waits=waits, position=position)
        if state.get("start"):
            waits = _EXPECTED.filled(waits=waits, start=str(state["start"]).replace("T", " "))
        return waits
    if name == "NO_ANSWER":
        return _NO_ANSWER.filled(job=job)
    if name == "COMPLETING":
        return _ENDING.filled(job=job)
    return _STATE.filled(job=job, state=name)


_RUNNING = Translated(en="job {job} runs on {nodes}", zh_cn="作业 {job} 正在 {nodes} 上运行")
_WAITS = Translated(en="job {job} waits: {reason}", zh_cn="作业 {job} 正在排队：{reason}")
_POSITION = Translated(
    en="{waits}; number {position} in the queue", zh_cn="{waits}；队列中第 {position} 位"
)
_EXPECTED = Translated(
    en="{waits}; expected to start at {start}", zh_cn="{waits}；预计 {start} 开始"
)
_NO_ANSWER = Translated(
    en="Slurm's controller does not answer; job {job} goes on, and it is asked again",
    zh_cn="Slurm 控制器没有应答；作业 {job} 会继续，稍后将再次查询",
)
_ENDING = Translated(en="job {job} is ending", zh_cn="作业 {job} 正在结束")
_STATE = Translated(en="job {job}: {state}", zh_cn="作业 {job}：{state}")
_REASONS = {
    "Resources": Translated(
        "the nodes it needs are in use (Resources)", "所需节点正被占用（Resources）"
    ),
    "Priority": Translated(
        "jobs with a higher priority come first (Priority)", "优先级更高的作业在前（Priority）"
    ),
    "ReqNodeNotAvail": Translated(
        "a node it needs is out of service (ReqNodeNotAvail)", "所需节点不可用（ReqNodeNotAvail）"
    ),
    "PartitionTimeLimit": Translated(
        "it asks for more time than the partition gives (PartitionTimeLimit)",
        "请求的时间超过分区时限（PartitionTimeLimit）",
    ),
    "Dependency": Translated(
        "it depends on another job (Dependency)", "依赖另一个作业（Dependency）"
    ),
    "QOSMaxJobsPerUserLimit": Translated(
        "you have as many jobs as your quality of service allows (QOSMaxJobsPerUserLimit)",
        "您的作业数已达服务质量（QOS）上限（QOSMaxJobsPerUserLimit）",
    ),
    "AssocGrpGRES": Translated(
        "your account uses as many GPUs as it may (AssocGrpGRES)",
        "您的账户使用的 GPU 数已达上限（AssocGrpGRES）",
    ),
    "None": Translated("not looked at yet", "调度器尚未处理"),
}
