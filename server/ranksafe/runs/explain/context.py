"""What the rest of a run's evidence adds to one failure: whose processes those are, who killed the rank, how often."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import replace

from ranksafe.localization import Translated, both
from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.launcher_report import LauncherReport
from ranksafe.runs.explain.signatures import match
from ranksafe.runs.explain.what_others_did import (
    compared,
    with_last_line,
    with_places,
    with_the_silent,
)
from ranksafe.runs.model import Failure

OF_TWO_RANKS = frozenset({"collective-shape-mismatch", "collective-mismatch"})
"""Kinds of failure in which two ranks have a part."""
_KERNEL_CHECK = re.compile(r"^.*\.cu:\d+: .*Assertion `.+` failed", re.MULTILINE)
_ABORTED = re.compile(
    r"^(?P<heap>(?:free|malloc|realloc)\(\): [^\n]+|corrupted (?:size|double)[^\n]+|double free or corruption[^\n]*"
    r"|malloc_consolidate\(\): [^\n]+|munmap_chunk\(\): [^\n]+)$|: (?P<check>Assertion `[^`\n]*' failed)\.$",
    re.MULTILINE,
)
"""glibc's words (malloc.c, assert.c)."""
_TERMINATED = re.compile(
    r"terminate called after throwing an instance of '[^']+'\s*\n\s*what\(\):\s+(?P<what>[^\n]+)"
)
"""libstdc++'s words for an exception that nothing caught."""
_UNJOINED = "terminate called without an active exception"
"""libstdc++'s words for ``std::terminate`` outside of an exception: a ``std::thread`` that nobody joined."""
_OUT_OF_MEMORY = re.compile(
    r"^.*(?:oom[-_]kill event|: Out Of Memory|Memory cgroup out of memory|Out of memory: Kill|OOMKilled"
    r"|node running low on memory|due to memory pressure \(OOM\)).*$",
    re.MULTILINE,
)

_NCCL_WARNS = re.compile(r"NCCL WARN (?P<words>[^\n]+)")
_NCCL_REASON = re.compile(r"^Last error: *\n(?P<words>[^\n]+)", re.MULTILINE)
"""torch's quotation of it, which stands apart where several ranks wrote their exceptions into one another."""
_NCCL_FOLLOWS = re.compile(
    r"onnection (?:closed|reset)|Socket recv failed|Proxy Service|proxy|Connect to \S+ failed|[Bb]ootstrap"
)
"""What NCCL warns of once something else has failed."""
_LONGEST_WARNING = 240
_COMMUNICATOR = re.compile(
    r"ncclCommInitRank\w* comm \S+ rank (?P<rank>\d+) nranks \d+ [^\n]*commId (?P<id>0x\w+) - Init START"
)
"""NCCL 2.17 to 2.27, src/init.cc, with NCCL_DEBUG=INFO."""
_TWO = 2
_OF_COMPILER = re.compile(
    r"^[^\n]*?\.(?:cu|cuh|cc|cpp|h|hpp)[:(][\d:,]+\)?:? (?:fatal )?error: (?P<words>[^\n]+)"
    r"|^nvcc fatal\s*: (?P<nvcc>[^\n]+)",
    re.MULTILINE,
)
"""gcc's and nvcc's form."""
_NO_OTHERS = "<NO_OTHER_FAILURES>"
"""torch 2.13.0, torch/distributed/elastic/multiprocessing/errors/__init__.py."""
_WORKER_SAYS = re.compile(r"Unexpected bus error encountered in worker[^\n]*")
"""torch, torch/csrc/DataLoader.cpp, the worker's handler of SIGBUS."""


def in_context(failure: Failure, evidence: Evidence, report: LauncherReport) -> Failure:
    """The failure with what only the whole run can tell."""
    if failure.kind == "fatal-signal":
        failure = _with_last_words(failure, evidence, report)
    add = _ADDITIONS.get(failure.kind)
    return failure if add is None else add(failure, evidence, report)


def _with_the_silent(failure: Failure, evidence: Evidence, report: LauncherReport) -> Failure:
    silent = with_the_silent(failure, evidence, report) if "Hccl" in failure.message else None
    return failure if silent is None else replace(failure, explanation=silent)


def _with_killer(failure: Failure, evidence: Evidence, _: LauncherReport) -> Failure:
    """What killed the process, and what the rank wrote last."""
    proven = _with_workers_word(_with_proof(failure, evidence), evidence)
    told = with_last_line(proven.explanation, failure.rank, evidence)
    return replace(proven, explanation=told)


def _with_places(failure: Failure, evidence: Evidence, _: LauncherReport) -> Failure:
    return with_places(failure, evidence)


def _with_lost_peer(failure: Failure, evidence: Evidence, report: LauncherReport) -> Failure:
    """Whether anyone saw another rank fail."""
    if _NO_OTHERS in evidence.launcher:
        return replace(failure, explanation=both(failure.explanation, _NO_OTHER_FAILED))
    if set(report.exits) <= {failure.rank}:
        return replace(failure, explanation=both(failure.explanation, _NONE_TOLD))
    return failure


def _with_listener(failure: Failure, _: Evidence, __: LauncherReport) -> Failure:
    """Rank 0, if it was about to keep the store itself: no other rank listens (torch 1.11 to 2.13, rendezvous.py)."""
    if failure.rank is not None and failure.rank >= 0:
        return failure
    listens = any(frame.function == "_create_c10d_store" for frame in failure.frames)
    return replace(failure, rank=0 if listens else None)


def _with_local_rank(failure: Failure, _: Evidence, report: LauncherReport) -> Failure:
    """The number that the GPU of a rank on a later machine should have had."""
    local = None if failure.rank is None else report.local_ranks.get(failure.rank)
    if local is None or local == failure.rank:
        return failure
    said = _LOCAL_RANK.filled(rank=failure.rank, local=local)
    return replace(failure, explanation=both(failure.explanation, said))


def _with_compilers_words(failure: Failure, evidence: Evidence, _: LauncherReport) -> Failure:
    """An extension that was not built with the first error of the compiler, if that is in the log."""
    found = _OF_COMPILER.search(evidence.everything())
    if found is None:
        return failure
    said = _COMPILER_SAYS.filled(words=(found["words"] or found["nvcc"]).strip()[:_LONGEST_WARNING])
    return replace(failure, explanation=both(failure.explanation, said))


def _with_communicators(failure: Failure, evidence: Evidence, _: LauncherReport) -> Failure:
    """A refused connection with the communicators that the ranks last began, where these are not the same."""
    begun: dict[int, str] = {}
    for found in _COMMUNICATOR.finditer(evidence.everything()):
        begun[int(found["rank"])] = found["id"]
    if len(set(begun.values())) < _TWO or failure.rank not in begun:
        return failure
    listed = ", ".join(f"rank {rank}: {begun[rank]}" for rank in sorted(begun)[:_TWO])
    return replace(failure, explanation=_DIFFERENT_COMMUNICATORS.filled(ids=listed))


def _with_warning_of_nccl(failure: Failure, evidence: Evidence, _: LauncherReport) -> Failure:
    """What NCCL itself had printed: a cause that is known, or its words."""
    printed = evidence.everything()
    said = [found["words"].strip() for found in _NCCL_WARNS.finditer(printed)]
    reasons = [found["words"].strip() for found in _NCCL_REASON.finditer(printed)]
    telling = [words for words in said if not _NCCL_FOLLOWS.search(words)]
    if "NCCL WARN" in failure.message:
        return failure
    for words in (*telling, *reasons):
        known = match(f"NCCL WARN {words}", printed=True)
        if known is not None and not known[0].secondary and known[0].kind != failure.kind:
            return replace(failure, kind=known[0].kind, code=known[0].code, explanation=known[1])
    if not telling or telling[0] in failure.message or telling[0] in failure.explanation.en:
        return failure
    warned = _NCCL_WARNED.filled(words=telling[0][:_LONGEST_WARNING])
    return replace(failure, explanation=both(failure.explanation, warned))


def _with_proof(failure: Failure, evidence: Evidence) -> Failure:
    """The kernel's, the scheduler's or Kubernetes' word for what killed a process."""
    for line in _OUT_OF_MEMORY.finditer(evidence.everything()):
        known = match(line[0].strip(), printed=True)
        if known is not None and known[0].kind == "host-out-of-memory":
            return replace(failure, kind=known[0].kind, explanation=known[1])
    return failure


def _with_workers_word(failure: Failure, evidence: Evidence) -> Failure:
    """What a DataLoader worker printed before it was gone; the rank only sees that it is."""
    said = _WORKER_SAYS.search(evidence.everything()) if failure.kind == "worker-died" else None
    known = match(said[0], printed=True) if said else None
    if known is None:
        return failure
    return replace(failure, kind=known[0].kind, code=known[0].code, explanation=known[1])


def _with_last_words(failure: Failure, evidence: Evidence, report: LauncherReport) -> Failure:
    """What C++, glibc or an assertion in C said before the only rank that was aborted ended."""
    aborted = [rank for rank, status in report.exits.items() if status == -signal.SIGABRT]
    said_by_all = evidence.everything()
    if failure.rank in aborted and (uncaught := _uncaught_in_cpp(failure, said_by_all)):
        return uncaught
    if _UNJOINED in said_by_all and failure.rank in aborted:
        return replace(failure, explanation=_THREAD_LEFT)
    found = _ABORTED.search(said_by_all)
    if found is None or len(aborted) != 1 or failure.rank != aborted[0]:
        return failure
    said = _HEAP if found["heap"] else _C_ASSERTION
    return replace(failure, explanation=said.filled(words=found["heap"] or found["check"]))


def _uncaught_in_cpp(failure: Failure, text: str) -> Failure | None:
    """The failure by the C++ exception that nothing caught, if all those printed say the same; None without one."""
    whats = [found["what"].strip() for found in _TERMINATED.finditer(text)]
    known = [match(what) for what in whats]
    kinds = {each[0].kind for each in known if each and not each[0].secondary}
    if len(kinds) == 1 and all(known):
        at, signature = next((at, each) for at, each in enumerate(known) if each)
        return replace(
            failure,
            kind=signature[0].kind,
            code=signature[0].code,
            message=whats[at],
            explanation=signature[1],
        )
    if len(set(whats)) == 1 and not any(known):
        return replace(failure, explanation=_UNCAUGHT_IN_CPP.filled(words=whats[0]))
    return None


def _with_kernel_check(failure: Failure, evidence: Evidence, _: LauncherReport) -> Failure:
    """Which check failed, and how often it was printed."""
    said = evidence.everything()
    checks = [match(line[0], printed=True) for line in _KERNEL_CHECK.finditer(said)]
    known = next((check for check in checks if check and check[0].kind == failure.kind), None)
    explanation = known[1] if known is not None else failure.explanation
    printed = {text: count for text, count in evidence.repeats.items() if ".cu:" in text}
    if printed:
        count = max(printed.values())
        if count > 1:
            explanation = both(explanation, _PRINTED_OFTEN.filled(count=count))
    return replace(failure, explanation=explanation)


_ADDITIONS: dict[str, Callable[[Failure, Evidence, LauncherReport], Failure]] = {
    "collective-timeout": compared,
    "collective-failed": _with_the_silent,
    **dict.fromkeys(("killed", "worker-killed", "worker-died", "ray-worker-died"), _with_killer),
    **dict.fromkeys(OF_TWO_RANKS, _with_places),
    "cuda-assert": _with_kernel_check,
    "extension-not-built": _with_compilers_words,
    "nccl-connection-refused": _with_communicators,
    **dict.fromkeys(("nccl-system-error", "nccl-invalid-usage"), _with_warning_of_nccl),
    "peer-lost": _with_lost_peer,
    "port-in-use": _with_listener,
    "too-few-gpus": _with_local_rank,
}
"""By kind of failure: what the run adds to it."""

_THREAD_LEFT = Translated(
    en="A thread of compiled code was still running when the process ended, which C++ answers with SIGABRT "
    '("terminate called without an active exception"). It happens on the way out: what was saved before is not lost. '
    "Close data loaders, writers and the process group before the script ends.",
    zh_cn="进程结束时编译代码的一个线程仍在运行，C++ 对此以 SIGABRT 响应（“terminate called without an active "
    "exception”）。它发生在退出过程中：此前保存的内容不会丢失。请在脚本结束前关闭数据加载器、写入器和进程组。",
)
_HEAP = Translated(
    en='Compiled code ended the rank: "{words}". It had damaged the memory it had got before, so the place where it '
    "was noticed tells little: suspect extensions built for another version of torch, and two copies of one library.",
    zh_cn="编译代码终止了该 rank：“{words}”。它在此之前已经破坏了所申请的内存，因此发现问题的位置意义不大："
    "请检查为其他版本 torch 构建的扩展，以及同一个库的两个副本。",
)
_UNCAUGHT_IN_CPP = Translated(
    en='An error in compiled code that nothing caught ended the rank: "{words}".',
    zh_cn="编译代码中未被捕获的错误终止了该 rank：“{words}”。",
)
_C_ASSERTION = Translated(
    en='A check in compiled code failed and ended the rank: "{words}".',
    zh_cn="编译代码中的检查失败并终止了该 rank：“{words}”。",
)
_NO_OTHER_FAILED = Translated(
    en="The launcher saw no other rank of its machine fail, so the rank that went away ended without an error (it had "
    "fewer batches, returned or called sys.exit(0) early), or it is on another machine, whose log tells more.",
    zh_cn="启动器没有看到本机其他 rank 失败，因此离开的 rank 没有报错就结束了（批次更少、提前返回或调用 sys.exit(0)），"
    "或位于另一台机器，见其日志。",
)
_COMPILER_SAYS = Translated(
    en='The compiler says: "{words}".',
    zh_cn="编译器的信息：“{words}”。",
)
_DIFFERENT_COMMUNICATORS = Translated(
    en="The ranks set up different NCCL communicators ({ids}), so one of them called where nobody listened: it read "
    "what an earlier group had left in the store. Make the process group once, or give each a store (or a prefix) of "
    "its own, and let no rank go on before all have left the earlier one.",
    zh_cn="各 rank 建立的是不同的 NCCL 通信器（{ids}），因此其中一个连接的地址没有人监听：它读到了之前的进程组留在"
    " store 中的内容。请只创建一次进程组，或为每个进程组使用各自的 store（或前缀），并在所有 rank 离开前一个之后"
    "再继续。",
)
_NONE_TOLD = Translated(
    en="No other rank says that it failed. A rank that comes to the end of its program closes its connections as well: "
    "see whether only some ranks make this call (if rank == 0), or have fewer batches; a barrier before the end "
    "shows it.",
    zh_cn="没有其他 rank 表示自己失败。运行到程序末尾的 rank 也会关闭连接：请查看是否只有部分 rank 执行此调用"
    "（if rank == 0），或批次更少；在末尾加上 barrier 可以验证。",
)
_LOCAL_RANK = Translated(
    en="Rank {rank} is local rank {local} on its machine, and its GPU is the one with that number.",
    zh_cn="rank {rank} 在其机器上的 local rank 是 {local}，应使用该编号的 GPU。",
)
_NCCL_WARNED = Translated(
    en='Before it NCCL printed "{words}".', zh_cn="在此之前 NCCL 打印了“{words}”。"
)
_PRINTED_OFTEN = Translated(
    en="The same check was printed {count} times; it is one failure.",
    zh_cn="同一检查打印了 {count} 次，是同一个故障。",
)
