"""Prove a rule: run its failing program and the fixed twin, and compare what happened with what they declare."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksafe.localization import Language, Translated
from ranksafe.rehearsal.settings import RehearsalOptions
from ranksafe.runs.errors import RunCancelled, RunNotPossible
from ranksafe.runs.model import RunEvent
from ranksafe.runs.proofs.environment import OverlayError, overlay_for
from ranksafe.runs.proofs.evidence import Execution, ObservedException
from ranksafe.runs.proofs.execution import cuda_device_count, execute
from ranksafe.runs.proofs.header import ProofHeader, ProofHeaderError, RunsOn, read_header
from ranksafe.runs.proofs.judgement import CANCELLED, ProofOutcome, judge, way_of
from ranksafe.runs.simulated_devices import make_devices

__all__ = ["NoProof", "ProgramReport", "ProofOutcome", "ProofReport", "prove", "run_program"]

if TYPE_CHECKING:
    from ranksafe.checker.registry import Registry

DEFAULT_TIMEOUT_SECONDS = 300.0
_MORE_ATTEMPTS = 3
"""Of a program whose rank was aborted by torch's own teardown."""


class NoProof(Exception):
    """There is no such rule, or it has no proof; ``explanation`` says which, in both languages."""

    def __init__(self, explanation: Translated) -> None:
        super().__init__(explanation.en)
        self.explanation = explanation


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """One of the two programs."""

    program: Path
    header: ProofHeader | None
    """None: it could not be read."""
    outcome: ProofOutcome
    explanation: Translated
    execution: Execution | None
    exception: ObservedException | None
    """The declared exception where it was seen, else the first one."""
    simulated: bool = False
    """Whether it ran, or was to run, on simulated GPUs."""


@dataclass(frozen=True, slots=True)
class ProofReport:
    """Both programs of a rule."""

    code: str
    failing: ProgramReport
    fixed: ProgramReport

    @property
    def outcome(self) -> ProofOutcome:
        """Proved when both programs did what they declare; else the worse of the two."""
        both = (self.failing.outcome, self.fixed.outcome)
        order = (ProofOutcome.CANCELLED, ProofOutcome.NOT_PROVED, ProofOutcome.NOT_RUN)
        return next((outcome for outcome in order if outcome in both), ProofOutcome.PROVED)

    @property
    def summary(self) -> Translated:
        """One sentence for people."""
        texts = {
            ProofOutcome.PROVED: Translated(
                "{code} is proved: the failing program failed as declared, the fixed one works",
                "{code} 已证明：失败程序按声明失败，修复后的程序运行正常",
            ),
            ProofOutcome.NOT_PROVED: Translated(
                "{code} is not proved here: a program did not do what it declares",
                "{code} 未能在此证明：有程序的表现与其声明不符",
            ),
            ProofOutcome.NOT_RUN: Translated(
                "{code} was not run here: {reason}", "{code} 未在此运行：{reason}"
            ),
            ProofOutcome.CANCELLED: Translated("{code}: cancelled", "{code}：已取消"),
        }
        skipped = next(
            (item for item in (self.failing, self.fixed) if item.outcome is ProofOutcome.NOT_RUN),
            self.failing,
        )
        return texts[self.outcome].filled(code=self.code, reason=skipped.explanation)

    def to_json(self, language: Language) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "code": self.code,
            "outcome": self.outcome.value,
            "summary": self.summary.in_language(language),
            "failing": _program_json(self.failing, language),
            "fixed": _program_json(self.fixed, language),
        }


def prove(
    code: str,
    registry: Registry,
    interpreter: Path,
    on_event: Callable[[RunEvent], None] = lambda _event: None,
    *,
    language: Language = "en",
    rehearse: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> ProofReport:
    """Run the proof of rule ``code`` under ``interpreter`` (a Python that has torch).

    Programs that need more CUDA devices than there are run on simulated ones, with ``rehearse`` all do.

    Blocks until both programs have ended; ``should_stop`` is asked about ten times a second and ends them.
    ``timeout_seconds`` holds for each program. Raises NoProof when there is nothing to run.
    """
    rule = registry.by_code(code)
    if rule is None:
        raise NoProof(Translated("there is no rule {code}", "没有规则 {code}").filled(code=code))
    if not rule.has_proof:
        raise NoProof(Translated("{code} has no proof", "{code} 没有证明程序").filled(code=code))

    def report(program: Path) -> ProgramReport:
        return run_program(
            program,
            interpreter,
            lambda text: on_event(RunEvent("status", text.in_language(language))),
            rehearse=rehearse,
            should_stop=should_stop,
            timeout_seconds=timeout_seconds,
        )

    return ProofReport(
        rule.metadata.code, failing=report(rule.failing_proof), fixed=report(rule.fixed_proof)
    )


def run_program(
    program: Path,
    interpreter: Path,
    on_progress: Callable[[Translated], None] = lambda _text: None,
    *,
    rehearse: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> ProgramReport:
    """Run one proof program and compare it with its header. Never raises for what the program does.

    A program that needs more CUDA devices than there are runs on simulated ones; with ``rehearse``, every program
    does, whatever its header runs on otherwise.
    """
    try:
        header = read_header(program)
    except ProofHeaderError as error:
        return ProgramReport(program, None, ProofOutcome.NOT_PROVED, error.explanation, None, None)
    simulated = rehearse or _lacks_devices(header)

    def report(
        outcome: ProofOutcome,
        explanation: Translated,
        execution: Execution | None = None,
        exception: ObservedException | None = None,
    ) -> ProgramReport:
        return ProgramReport(program, header, outcome, explanation, execution, exception, simulated)

    if should_stop():
        return report(ProofOutcome.CANCELLED, CANCELLED)
    try:
        execution = _execute(
            program, header, interpreter, on_progress, simulated, should_stop, timeout_seconds
        )
    except RunCancelled:
        return report(ProofOutcome.CANCELLED, CANCELLED)
    except RunNotPossible as error:
        return report(ProofOutcome.NOT_RUN, error.message)
    except OverlayError as error:
        return report(ProofOutcome.NOT_RUN, error.explanation)
    except OSError as error:
        reason = Translated("it could not be started: {error}", "无法启动：{error}")
        return report(ProofOutcome.NOT_RUN, reason.filled(error=error))
    judgement = judge(header, execution, simulated=simulated)
    return report(judgement.outcome, judgement.explanation, execution, judgement.exception)


def _execute(
    program: Path,
    header: ProofHeader,
    interpreter: Path,
    on_progress: Callable[[Translated], None],
    simulated: bool,
    should_stop: Callable[[], bool],
    timeout_seconds: float,
) -> Execution:
    overlay = overlay_for(header.requirements, interpreter, on_progress)
    devices = None
    if simulated:
        devices = make_devices(
            interpreter, os.environ, RehearsalOptions(), on_progress, should_stop
        )
    on_progress(
        Translated("running {program} ({way})", "正在运行 {program}（{way}）").filled(
            program=program.name, way=way_of(header, simulated=simulated)
        )
    )

    def attempt() -> Execution:
        return execute(
            program,
            header,
            interpreter,
            overlay,
            devices=devices,
            timeout_seconds=timeout_seconds,
            should_stop=should_stop,
        )

    execution = attempt()
    for _ in range(_MORE_ATTEMPTS):
        if not _died_while_leaving(header, execution):
            break
        on_progress(
            Translated(
                "a rank was aborted while it was leaving; once more",
                "某个 rank 在退出时被中止，重试一次",
            )
        )
        execution = attempt()
    return execution


def _died_while_leaving(header: ProofHeader, execution: Execution) -> bool:
    """A thread of gloo that drops the last reference to a tensor after the interpreter began to finalise is unwound by
    force, and C++ aborts the rank (CPython 3.11, torch 2.13.0: of a hundred exits under load, one or two)."""
    failed = execution.exit_status not in (0, None)
    aborted = "terminate called without an active exception" in execution.output
    return header.runs_on is RunsOn.CPU_RANKS and failed and aborted and not execution.exceptions


def _lacks_devices(header: ProofHeader) -> bool:
    return header.runs_on is RunsOn.CUDA and cuda_device_count() < header.ranks


def _program_json(report: ProgramReport, language: Language) -> dict[str, Any]:
    exception, execution = report.exception, report.execution
    blamed = exception.blamed if exception else None
    return {
        "program": str(report.program),
        "runs_on": report.header.runs_on.value if report.header else None,
        "simulated": report.simulated,
        "outcome": report.outcome.value,
        "explanation": report.explanation.in_language(language),
        "command": list(execution.command) if execution else [],
        "exit": execution.exit_status if execution else None,
        "seconds": round(execution.seconds, 1) if execution else 0.0,
        "exception": f"{exception.type}: {exception.message}" if exception else None,
        "line": blamed.line if blamed else None,
    }
