"""Compare what a proof program did with what its header declares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from ranksafe.localization import Translated
from ranksafe.runs.explain.limits import kind_of_text, limit_text
from ranksafe.runs.proofs.evidence import Execution, ObservedException
from ranksafe.runs.proofs.header import ExpectedException, ExpectedOutput, ProofHeader, RunsOn


class ProofOutcome(str, Enum):
    """What a proof, or one of its programs, showed."""

    PROVED = "proved"
    """Everything went as declared."""
    NOT_PROVED = "not-proved"
    NOT_RUN = "not-run"
    """This machine lacks something; nothing is said about the rule."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of one program."""

    outcome: ProofOutcome
    explanation: Translated
    exception: ObservedException | None
    """The declared exception where it was seen, else the first one."""


CANCELLED = Translated("cancelled", "已取消")
_AS_DECLARED = Translated("ended as declared ({way})", "按声明结束（{way}）")
_RAISED_AS_DECLARED = Translated(
    "raised {type} in line {line}, as declared ({way})",
    "按声明在第 {line} 行引发 {type}（{way}）",
)
_WAYS = {
    RunsOn.CPU_RANKS: Translated("{ranks} gloo ranks on the CPU", "CPU 上的 {ranks} 个 gloo rank"),
    RunsOn.EMULATED_DP: Translated(
        "nn.DataParallel over {ranks} replicas emulated on the CPU",
        "nn.DataParallel，在 CPU 上模拟 {ranks} 个副本",
    ),
    RunsOn.JAX_HOST: Translated(
        "JAX's CPU split into {ranks} devices", "JAX 的 CPU 平台划分为 {ranks} 个设备"
    ),
    RunsOn.CUDA: Translated("{ranks} CUDA devices", "{ranks} 个 CUDA 设备"),
}

_SIMULATED = Translated("{ranks} simulated GPUs", "{ranks} 个模拟 GPU")
_LIMIT = Translated("simulation limit: {text}", "模拟的限制：{text}")


def judge(header: ProofHeader, execution: Execution, *, simulated: bool = False) -> Judgement:
    """What an execution shows of the program's claim; ``simulated``: it ran on simulated GPUs.

    What these cannot do says nothing about the claim.
    """
    if execution.exit_status is None and not execution.timed_out:
        return Judgement(ProofOutcome.CANCELLED, CANCELLED, None)
    declared = header.expectations[0]
    exception = execution.exceptions[0] if execution.exceptions else None
    if execution.timed_out:
        difference: Translated | None = Translated(
            "did not end within {seconds:.0f} seconds", "在 {seconds:.0f} 秒内没有结束"
        ).filled(seconds=execution.seconds)
    elif isinstance(declared, ExpectedException):
        exception, difference = _compare_exceptions(declared, header, execution)
    else:
        difference = _compare_success(header, execution)
    if difference is not None and simulated:
        limit = next(filter(_is_limit, execution.exceptions), None)
        if limit is not None:
            reason = _LIMIT.filled(text=limit_text(limit.message).split("\n")[0])
            return Judgement(ProofOutcome.NOT_RUN, reason, limit)
    outcome = ProofOutcome.PROVED if difference is None else ProofOutcome.NOT_PROVED
    explanation = difference or _as_declared(header, exception, simulated)
    return Judgement(outcome, explanation, exception)


def way_of(header: ProofHeader, *, simulated: bool) -> Translated:
    """What the program runs on, in words."""
    return (_SIMULATED if simulated else _WAYS[header.runs_on]).filled(ranks=header.ranks)


def _is_limit(seen: ObservedException) -> bool:
    return kind_of_text(f"{seen.type}: {seen.message}", offline=True) is not None


def _as_declared(
    header: ProofHeader, exception: ObservedException | None, simulated: bool
) -> Translated:
    way = way_of(header, simulated=simulated)
    if exception is None or exception.blamed is None:
        return _AS_DECLARED.filled(way=way)
    return _RAISED_AS_DECLARED.filled(type=exception.type, line=exception.blamed.line, way=way)


def _compare_exceptions(
    declared: ExpectedException, header: ProofHeader, execution: Execution
) -> tuple[ObservedException | None, Translated | None]:
    """The exception to show, and how it differs from the declared one (None: not at all).

    Every rank may fail in its own way once one has failed, so one rank with the declared exception is enough.
    """
    fitting = [item for item in execution.exceptions if _fits(declared, item)]
    if not fitting:
        return next(iter(execution.exceptions), None), _no_such_exception(execution)
    for item in fitting:
        if item.blamed is not None and _squeezed(item.blamed.source) == _squeezed(
            header.frame or ""
        ):
            return item, None
    blamed = fitting[0].blamed
    return fitting[0], Translated(
        "the innermost line of the program is {seen}, declared is {frame}",
        "程序中最内层的出错行是 {seen}，声明的是 {frame}",
    ).filled(
        seen=f"{blamed.line}: {blamed.source!r}" if blamed else Translated("nowhere", "不存在"),
        frame=repr(header.frame),
    )


def _fits(declared: ExpectedException, seen: ObservedException) -> bool:
    same_type = declared.type.rpartition(".")[2] == seen.type.rpartition(".")[2]
    return same_type and _squeezed(declared.text) in _squeezed(seen.message)


def _no_such_exception(execution: Execution) -> Translated:
    if execution.exceptions:
        first = execution.exceptions[0]
        last_line = first.message.strip().splitlines()[-1:] or [""]
        return Translated("raised {type}: {text}", "引发了 {type}：{text}").filled(
            type=first.type, text=last_line[0]
        )
    return Translated(
        "raised nothing, exit status {status}", "没有引发异常，退出状态为 {status}"
    ).filled(status=execution.exit_status)


def _compare_success(header: ProofHeader, execution: Execution) -> Translated | None:
    if execution.exceptions:
        return _no_such_exception(execution)
    if execution.exit_status != 0:
        return Translated("exit status {status}", "退出状态为 {status}").filled(
            status=execution.exit_status
        )
    for declared in header.expectations:
        if isinstance(declared, ExpectedOutput) and not re.search(
            declared.pattern, execution.output, re.MULTILINE
        ):
            return Translated(
                "its output has nothing like {pattern}", "输出中没有与 {pattern} 匹配的内容"
            ).filled(pattern=repr(declared.pattern))
    return None


def _squeezed(text: str) -> str:
    return " ".join(text.split())
