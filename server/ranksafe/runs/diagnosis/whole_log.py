"""What only a log as a whole can tell of a failure: its last complaint, its raw end, the task that Slurm names."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from ranksafe.localization import Translated, both
from ranksafe.runs.diagnosis.loose_tracebacks import rank_in_record
from ranksafe.runs.explain.deaths import signal_name
from ranksafe.runs.explain.printed import is_exception, last_complaint
from ranksafe.runs.explain.signatures import match
from ranksafe.runs.explain.slurm_tasks import failed_task, tasks_are_ranks
from ranksafe.runs.log_text.progress import is_end
from ranksafe.runs.log_text.reader import SaidBy
from ranksafe.runs.model import Failure

_ARGUMENTS: Final = "script-arguments"
_PEER_LOST = "peer-lost"
_LOCAL_RANK = "local-rank-argument"
_TERMINATED = "terminated"
_TIMED_OUT = re.compile(r"\b(?:exit|rc|status|code)\b\W{0,3}124\b", re.IGNORECASE)
"""timeout(1) of GNU coreutils, when the time is over."""
_NO_SCRIPT = "can't open file '"
"""CPython's word for a script that is not there (Modules/main.c)."""
_REPORT = re.compile(
    r"^\[rank\d+\]: Traceback|failed \(exitcode: |ChildFailedError|Sending process \d+ closing signal"
)
_OF_A_TASK = frozenset({"host-out-of-memory", "fatal-signal", "killed"})
_UNKNOWN = frozenset({"launcher", "exit-status", "exception"})
_STATUSES = 256
_HANDED_ON = re.compile(r"\b(?:code|status)[ :=]+(?P<code>25[02]|24[15]|247)\b")
"""256 less SIGABRT, SIGILL, SIGTERM, SIGSEGV or SIGKILL: what becomes of a negative status in ``sys.exit``."""
_TAIL_SHOWN = 12
_LONGEST = 120
_PRINTED_AT = re.compile(r"(?:^|[\s\[(])(?P<file>[\w./-]*\w\.py):(?P<line>\d+)[\])]?(?=[\s:]|$)")
"""Where a logger says that its caller stands."""
_LOST_ARGUMENT = re.compile(
    r"^(?:\S+: )*(?:line \d+: )?(?P<argument>--?[A-Za-z][\w-]*): (?:command )?not found",
    re.MULTILINE,
)
"""A shell's complaint (bash, dash, zsh) about an argument that it took for a command."""


def is_of_the_command(failure: Failure) -> bool:
    """Whether the command line is at fault, which all ranks share."""
    return failure.kind in (_ARGUMENTS, _LOCAL_RANK) or _NO_SCRIPT in failure.message


_NOTHING_KNOWN_IN_LOG = Translated(
    en="The launcher says that this rank failed; no traceback and no message that is known tells why. The last lines "
    "before it are shown, and more may be in the rank's own standard error (torchrun keeps it with --log-dir and "
    "--redirects 3).",
    zh_cn="启动器报告该 rank 失败；没有 traceback 或已知的消息说明原因。下面显示其之前的最后几行，更多内容可能在该 "
    "rank 自己的标准错误中（torchrun 可用 --log-dir 和 --redirects 3 保存）。",
)
_NOT_IN_LOG = Translated(
    en="The launcher says that this rank failed, and this log does not say why: look at the rank's own standard error "
    "(torchrun keeps it with --log-dir and --redirects 3).",
    zh_cn="启动器表示该 rank 失败，但此日志没有说明原因：请查看该 rank 自己的标准错误（torchrun 可用 --log-dir 和 "
    "--redirects 3 保存）。",
)
_PRINTED_BEFORE = Translated(
    en='The launcher says that this rank failed; no exception was printed. The last complaint before it is "{line}".',
    zh_cn="启动器表示该 rank 失败，没有打印异常。此前最后的错误输出是：“{line}”。",
)
_STOPPED_BY_TIMEOUT = Translated(
    en="The status 124 in the log is that of timeout(1): the time that it was given ran out. Give it more, or save "
    "checkpoints and resume.",
    zh_cn="日志中的状态 124 是 timeout(1) 的退出码：所给的时间已用完。请延长时间，或保存检查点后继续。",
)
_ENDED_BY_SIGNAL = Translated(
    en="{code} is how a launcher hands on that a signal, {signal}, had ended a process (SIGKILL: most often for lack "
    "of "
    "memory, look at the kernel's log of that machine).",
    zh_cn="{code} 是启动器转述的退出码，表示某个进程被信号 {signal} 终止（SIGKILL 多半是内存不足，见该机器的内核日志）"
    "。",
)
_TAKEN_FOR_A_COMMAND = Translated(
    en="The shell took {argument} for a command of its own, so a line of the command ended too early: each line but "
    "the last has to end with a backslash, and nothing may follow it.",
    zh_cn="shell 把 {argument} 当作一条单独的命令，说明命令的某一行过早结束：除最后一行外，每行都要以反斜杠结尾，"
    "其后不能有任何字符。",
)


def finished(failure: Failure, said: SaidBy, launcher: str) -> Failure:
    """A failure with what the log as a whole tells: ranks without a number, and the raw end where nothing is known.

    ``launcher``: what the launchers and schedulers said.
    """
    if failure.rank is not None and failure.rank < 0:
        failure = replace(failure, rank=None)
    if failure.kind == "exit-status" and not failure.frames:
        before = _before_report(said)
        complaint = last_complaint(_of_rank(failure.rank, before))
        unknown = _NOTHING_KNOWN_IN_LOG if before else _NOT_IN_LOG
        told = _PRINTED_BEFORE.filled(line=complaint) if complaint else unknown
        known = match(complaint) if complaint and is_exception(complaint) else None
        if complaint and known is not None and not known[0].secondary:
            failure = replace(failure, kind=known[0].kind, code=known[0].code, message=complaint)
            told = known[1]
        failure = replace(failure, explanation=told)
        printed_at = _PRINTED_AT.search(complaint) if complaint else None
        if printed_at is not None:
            failure = replace(failure, filename=printed_at["file"], line=int(printed_at["line"]))
    lost = (
        _LOST_ARGUMENT.search("\n".join(text for _, text in said.tail))
        if failure.kind == _ARGUMENTS
        else None
    )
    if lost is not None:
        told = _TAKEN_FOR_A_COMMAND.filled(argument=lost["argument"])
        failure = replace(failure, explanation=both(failure.explanation, told))
    handed_on = _HANDED_ON.search(failure.message) if failure.kind in _UNKNOWN else None
    if handed_on is not None:
        code = int(handed_on["code"])
        told = _ENDED_BY_SIGNAL.filled(code=code, signal=signal_name(code - _STATUSES))
        failure = replace(failure, explanation=both(failure.explanation, told))
    if failure.kind == _TERMINATED and any(_TIMED_OUT.search(text) for _, text in said.tail):
        failure = replace(failure, explanation=both(failure.explanation, _STOPPED_BY_TIMEOUT))
    if failure.root_cause and failure.kind == _PEER_LOST:
        failure = _with_finished(failure, said)
    if failure.root_cause and failure.kind in _UNKNOWN and not failure.frames:
        failure = replace(failure, excerpt=_end_of(said))
    return _with_task(failure, launcher)


_FINISHED_BEFORE = Translated(
    en='Rank {rank} had said before that it was finished ("{text}"): it had fewer batches than the others, or left '
    "early. Every rank needs the same number of steps (DistributedSampler, or the smallest number of all ranks).",
    zh_cn="rank {rank} 此前已表示完成（“{text}”）：其批次少于其他 rank，或提前离开。每个 rank 需要相同的步数"
    "（DistributedSampler，或取所有 rank 的最小值）。",
)


def _with_finished(failure: Failure, said: SaidBy) -> Failure:
    """A lost connection with the only rank that had said that it was finished, if that is another one."""
    done = {
        rank: text.strip()[:_LONGEST]
        for _, text in said.tail
        if is_end(text) and (rank := rank_in_record(text)) is not None
    }
    if len(done) != 1 or failure.rank in done:
        return failure
    ((rank, text),) = done.items()
    told = _FINISHED_BEFORE.filled(rank=rank, text=text)
    return replace(failure, explanation=both(failure.explanation, told))


def _of_rank(rank: int | None, lines: list[str]) -> list[str]:
    """The lines without those that name another rank than this one."""
    return [line for line in lines if rank is None or rank_in_record(line) in (None, rank)]


_SLURM_TASK = Translated(
    en="Slurm names task {task} on node {node}.",
    zh_cn="Slurm 指出的是节点 {node} 上的任务 {task}。",
)


def _with_task(failure: Failure, launcher: str) -> Failure:
    """The task that Slurm names, where no rank is known."""
    failed = failed_task(launcher) if failure.rank is None and failure.root_cause else None
    if failed is None or failure.kind not in _OF_A_TASK:
        return failure
    task, node = failed
    said = _SLURM_TASK.filled(task=task, node=node)
    rank = task if tasks_are_ranks(launcher) else None
    return replace(failure, rank=rank, explanation=both(failure.explanation, said))


def _end_of(said: SaidBy) -> tuple[str, ...]:
    """The raw last lines, without the launcher's report on them if there are others."""
    lines = [text.rstrip() for _, text in said.tail]
    return tuple(_before_report(said) or lines[-_TAIL_SHOWN:])


def _before_report(said: SaidBy) -> list[str]:
    """The raw last lines up to the launcher's report; none where that is all there is."""
    lines = [text.rstrip() for _, text in said.tail]
    report = next((at for at, text in enumerate(lines) if _REPORT.search(text)), len(lines))
    return lines[:report][-_TAIL_SHOWN:]
