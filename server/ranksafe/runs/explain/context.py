"""What the rest of a run's evidence adds to one failure: whose processes those are, who killed the rank, how often."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.launcher_report import LauncherReport
from ranksafe.runs.explain.locate import innermost_user_frame
from ranksafe.runs.explain.signatures import gpu_memory, match
from ranksafe.runs.explain.timeouts import compare_timeouts, missing_rank
from ranksafe.runs.explain.words import both
from ranksafe.runs.model import Failure

_KERNEL_CHECK = re.compile(r"^.*\.cu:\d+: .*Assertion `.+` failed", re.MULTILINE)
_OUT_OF_MEMORY = re.compile(
    r"^.*(?:oom[-_]kill event|: Out Of Memory|Memory cgroup out of memory|Out of memory: Kill|OOMKilled"
    r"|node running low on memory|due to memory pressure \(OOM\)).*$",
    re.MULTILINE,
)


def in_context(failure: Failure, evidence: Evidence, report: LauncherReport) -> Failure:
    """The failure with what only the whole run can tell."""
    if failure.kind == "collective-timeout":
        return _compared(failure, evidence)
    if failure.kind == gpu_memory.KIND:
        return _with_own_processes(failure, evidence, report)
    if failure.kind in ("killed", "worker-killed", "worker-died"):
        return _with_proof(failure, evidence)
    if failure.message.startswith("FileNotFoundError: ") and failure.rank in (None, 0):
        # A file that only another rank misses may be one that rank 0 had yet to write.
        return replace(failure, explanation=both(failure.explanation, _ONE_GPU_TOO))
    if failure.kind == "cuda-assert":
        return _with_kernel_check(failure, evidence)
    return failure


def _compared(failure: Failure, evidence: Evidence) -> Failure:
    """A timeout next to those of other ranks. Without a line of its own it is told of the rank that was missing."""
    said, ranks = _everything(evidence), _ranks(evidence)
    together = compare_timeouts(said, ranks) or _at_different_lines(failure, evidence)
    if together is None:
        return failure
    missing = None if failure.frames else missing_rank(said, ranks)
    rank = failure.rank if missing is None else missing
    return replace(failure, rank=rank, explanation=together)


def _at_different_lines(failure: Failure, evidence: Evidence) -> Translated | None:
    """Where each rank waited, if several timed out and not all at the same line."""
    places: dict[int, str] = {}
    for number, rank in sorted(evidence.ranks.items()):
        known = match(rank.raised.text) if rank.raised is not None else None
        frame = innermost_user_frame(rank.raised.frames) if rank.raised is not None else None
        if known is not None and known[0].kind == failure.kind and frame is not None:
            places[number] = f"{Path(frame.filename).name}:{frame.line}"
    if len(set(places.values())) < 2:
        return None
    listed = ", ".join(f"rank {number}: {place}" for number, place in places.items())
    return both(failure.explanation, _ELSEWHERE.filled(places=listed))


def _ranks(evidence: Evidence) -> list[int]:
    return [number for number in evidence.ranks if number >= 0]


def _everything(evidence: Evidence) -> str:
    return "\n".join((evidence.launcher, *(rank.errors for rank in evidence.ranks.values())))


def _with_own_processes(failure: Failure, evidence: Evidence, report: LauncherReport) -> Failure:
    ours = {pid: rank for rank, pid in report.pids.items()}
    ours |= {rank.pid: rank.rank for rank in evidence.ranks.values() if rank.pid is not None}
    if not ours:
        return failure
    return replace(failure, explanation=gpu_memory.explain_gpu_memory(failure.message, ours))


def _with_proof(failure: Failure, evidence: Evidence) -> Failure:
    """The kernel's, the scheduler's or Kubernetes' word for what killed a process."""
    for line in _OUT_OF_MEMORY.finditer(_everything(evidence)):
        known = match(line[0].strip(), printed=True)
        if known is not None and known[0].kind == "host-out-of-memory":
            return replace(failure, kind=known[0].kind, explanation=known[1])
    return failure


def _with_kernel_check(failure: Failure, evidence: Evidence) -> Failure:
    """Which check failed, and how often it was printed."""
    said = _everything(evidence)
    checks = [match(line[0], printed=True) for line in _KERNEL_CHECK.finditer(said)]
    known = next((check for check in checks if check and check[0].kind == failure.kind), None)
    explanation = known[1] if known is not None else failure.explanation
    printed = {text: count for text, count in evidence.repeats.items() if ".cu:" in text}
    if printed:
        count = max(printed.values())
        if count > 1:
            explanation = both(explanation, _PRINTED_OFTEN.filled(count=count))
    return replace(failure, explanation=explanation)


_ELSEWHERE = Translated(
    en="The ranks timed out at different lines ({places}): they were in different collectives.",
    zh_cn="各 rank 在不同的行超时（{places}）：它们处于不同的集合通信。",
)
_ONE_GPU_TOO = Translated(en="This has nothing to do with several GPUs.", zh_cn="这与多 GPU 无关。")
_PRINTED_OFTEN = Translated(
    en="The same check was printed {count} times; it is one failure.",
    zh_cn="同一检查打印了 {count} 次，是同一个故障。",
)
