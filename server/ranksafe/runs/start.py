"""Start a run and watch it: the one entry for the command line and the language server."""

from __future__ import annotations

import contextlib
import os
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.conclusion import Conclusion, Ending, conclude
from ranksafe.runs.debugger import debugger_event
from ranksafe.runs.directory import new_run_directory, release
from ranksafe.runs.errors import RunCancelled, RunNotPossible
from ranksafe.runs.explain.evidence import parse_entry
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.launch_plan import Plan
from ranksafe.runs.log import CombinedLog, blot_out
from ranksafe.runs.model import RunEvent, RunRequest, RunResult
from ranksafe.runs.records.recorder import Recorder
from ranksafe.runs.records.redaction import secret_values, without
from ranksafe.runs.rehearsals.second_run import carried_out, second_run
from ranksafe.runs.rehearsals.verdict import Verdict
from ranksafe.runs.remote.record import read_record
from ranksafe.runs.targets import target_named
from ranksafe.runs.targets.protocol import (
    GoesOn,
    Listener,
    OutOfReach,
    Output,
    Process,
    Reporting,
)
from ranksafe.runs.watch.observer import Observer
from ranksafe.runs.what_is_started import with_its_file

_POLL_SECONDS = 0.03
_END_SECONDS = 30.0

OnEvent = Callable[[RunEvent], None]


class Run:
    """A run that has been started. Events come on its own thread, in order, the last before `wait` returns."""

    def __init__(
        self,
        request: RunRequest,
        plan: Plan,
        process: Process,
        directory: Path,
        on_event: OnEvent,
        *,
        started_ago: float | None = None,
    ) -> None:
        """``started_ago``: seconds since the start of a run that another process had begun; None: it is new."""
        self.run_id = directory.name
        self._request = request
        self._plan = plan
        self._process = process
        self._directory = directory
        self._recorder = Recorder(request, plan, directory)
        self._on_event = on_event
        self._is_new = started_ago is None
        self._started = time.monotonic() - (started_ago or 0.0)
        self._timed_out = False
        self._had_raised = False
        roots = [request.script.absolute().parent, plan.working_directory]
        self._hidden = secret_values(plan.command, {**os.environ, **request.environment})
        self._user_code = UserCode(roots, plan.working_directory)
        self._second: Run | None = None
        self._cancelled = False
        self._is_folder_gone = False
        self._observer = Observer(request, plan.ranks, directory, self._user_code)
        self._result: RunResult | None = None
        self._error: Exception | None = None
        # Not Thread.join: a Ctrl+C during it makes CPython 3.11 take the thread for ended.
        self._ended = threading.Event()
        threading.Thread(target=self._work, name=f"run {self.run_id}", daemon=True).start()

    @property
    def log(self) -> Path:
        """All ranks' output so far; the file comes with the first line."""
        return self._directory / "log.txt"

    def cancel(self) -> None:
        """End every process of the run, and nothing else; returns at once."""
        self._cancelled = True
        self._process.cancel()
        if self._second is not None:
            self._second.cancel()

    def leave(self) -> bool:
        """The editor goes away: end the run, unless it belongs to a scheduler; whether it is being ended."""
        if isinstance(self._process, GoesOn):
            self._process.detach()
            return False
        self.cancel()
        return True

    def wait(self, timeout: float | None = None) -> RunResult | None:
        """The result, or None when the run still goes on after ``timeout`` seconds.

        Raises what ``on_event`` raised, if it did (a closed pipe, say); the run was then cancelled. So it was where it
        could no longer be watched: RunNotPossible says why. A fault of ours in explaining it comes out here, too.
        """
        self._ended.wait(timeout)
        if self._error is not None and self._ended.is_set():
            raise self._error
        return self._result

    def _work(self) -> None:
        try:
            self._watch()
        except OSError as error:
            sentence = _UNSEEN_ELSEWHERE if self._is_kept else _UNSEEN
            values = {"path": self._directory, "reason": error, "run": self.run_id}
            self._give_up(RunNotPossible(sentence.filled(**values)))
        except Exception as error:
            self._give_up(error)
        finally:
            self._ended.set()

    def _give_up(self, error: Exception) -> None:
        """What cannot be watched is ended, as nobody would know of it any more, unless it can be come back to."""
        self._error = self._error or error
        end = time.monotonic() + _END_SECONDS
        with contextlib.suppress(Exception):
            if self._is_kept:
                self._leave_alone()
                return
            self._process.cancel()
            while not self._process.is_over() and time.monotonic() < end:
                with contextlib.suppress(OSError):
                    self._process.follow()
                time.sleep(_POLL_SECONDS)
            self._process.collect()

    @property
    def _is_kept(self) -> bool:
        """Whether the run goes on elsewhere, and this machine still knows where."""
        return read_record(self._directory) is not None

    def _leave_alone(self) -> None:
        if isinstance(self._process, GoesOn):
            self._process.detach()
        else:
            self._process.collect()

    def _watch(self) -> None:
        (self._recorder.begin if self._is_new else self._recorder.resume)()
        log = CombinedLog(self.log, self._hidden)
        self._say(shlex.join(self._plan.command))
        language = self._request.language
        for sentence in (*self._plan.limits, *self._plan.modified):
            self._say(sentence.in_language(language))
        over = False
        while not over:
            over = self._process.is_over()
            lines = self._process.follow()
            for line in lines:
                if line.stream == "jsonl":
                    self._journal(line)
                elif line.stream == "status":
                    self._say(line.text)
                else:
                    log.write(line)
                    self._tell(RunEvent("output", line.text, line.rank, line.stream, line.goes_on))
            self._check_time()
            self._observe()
            self._recorder.look()
            self._look_at_folder()
            if not (over or lines):
                time.sleep(_POLL_SECONDS)
        log.close()
        try:
            self._result = self._finish()
        except Exception as error:
            self._error = self._error or error

    def _finish(self) -> RunResult:
        directory = self._process.collect()
        ended = self._timed_out or self._observer.ends_run
        known = self._process.returncode if isinstance(self._process, Reporting) else None
        ending = Ending(self._status(), ended, tuple(self._observer.failures), known)
        request, plan = self._request, self._plan
        conclusion = without(
            conclude(request, plan, directory, self.run_id, ending, self._user_code), self._hidden
        )
        conclusion = replace(conclusion, verdict=self._confirmed(conclusion.verdict))
        verdict = conclusion.verdict
        for sentence in self._observer.last_words():
            self._say(sentence.in_language(request.language))
        for failure in (each for each in verdict.failures if each.root_cause):
            self._emit("failure", failure.message, failure.rank)
        limits = (*plan.limits, *conclusion.limits)
        result = self._as_result(conclusion, limits)
        self._recorder.end(result, (*plan.modified, *verdict.modified), limits)
        blot_out(directory, self._hidden)
        return result

    def _confirmed(self, verdict: Verdict) -> Verdict:
        """In doubt the same runs once more, before the script is accused."""
        wanted = second_run(self._request, verdict, time.monotonic() - self._started)
        if wanted is None or self._cancelled:
            return verdict
        self._say(wanted.announcement.in_language(self._request.language))
        return carried_out(wanted, verdict, self._start_second)

    def _start_second(self, request: RunRequest) -> Run:
        # Where the first could not be kept apart, that was agreed to.
        self._second = start_run(
            request,
            lambda _event: None,
            should_stop=lambda: self._cancelled,
            agrees=lambda _question: True,
        )
        return self._second

    def _as_result(self, conclusion: Conclusion, limits: Sequence[Translated]) -> RunResult:
        language = self._request.language
        verdict = conclusion.verdict
        modified = (*self._plan.modified, *verdict.modified)
        return RunResult(
            run_id=self.run_id,
            outcome=verdict.outcome,
            target=self._request.target,
            command=self._plan.command,
            modified=tuple(text.in_language(language) for text in modified),
            limits=tuple(text.in_language(language) for text in limits),
            ranks=conclusion.ranks,
            failures=tuple(verdict.failures),
            seconds=time.monotonic() - self._started,
            log=self.log,
            run_directory=self._directory,
            simulation_limit=verdict.simulation_limit,
            unreached=conclusion.unreached,
            memory=conclusion.memory,
        )

    def _look_at_folder(self) -> None:
        """Say once that somebody has removed it; what is known without it is told all the same."""
        if not self._is_folder_gone and not self._directory.is_dir():
            self._is_folder_gone = True
            sentence = _REMOVED.filled(path=self._directory)
            self._say(sentence.in_language(self._request.language))

    def _journal(self, line: Output) -> None:
        """Tell of the steps, for which rank 0 speaks, and of a rank that waits for a debugger."""
        entry = parse_entry(line.text)
        self._observer.heard(line.rank, entry)
        if entry.get("event") == "step" and line.rank == 0:
            of = _STEP if self._request.steps is None else _STEP_OF
            text = of.filled(step=entry.get("step"), steps=self._request.steps)
            self._emit("step", text.in_language(self._request.language), line.rank)
        if entry.get("event") == "debugger":
            self._tell(debugger_event(entry, line.rank, self._request.language))

    def _status(self) -> str:
        """How the run ended: as the process says, unless it was ended for a reason of ours."""
        if self._observer.failures and (self._observer.ends_run or self._timed_out):
            return "hung"
        if self._timed_out and not self._had_raised:
            return "timed-out"
        # Ended because a failed rank stayed, or others took their time to end: that rank's failure is the reason.
        is_ours = self._observer.ends_run or self._timed_out
        return "exited" if is_ours else self._process.status

    def _observe(self) -> None:
        """Tell what the ranks do, and end the run where they hang."""
        for event in self._observer.turn():
            self._tell(event)
            if self._observer.ends_run:
                self._process.cancel()

    def _check_time(self) -> None:
        limit = self._request.timeout_seconds
        if limit is None or self._timed_out or time.monotonic() - self._started < limit:
            return
        if isinstance(self._process, OutOfReach) and not self._process.is_seen_to_go_on:
            return  # it may have ended in time
        self._timed_out = True
        self._had_raised = self._observer.has_heard_of_a_failure
        self._say(_TIMED_OUT.filled(seconds=f"{limit:g}").in_language(self._request.language))
        self._process.cancel()

    def _say(self, text: str) -> None:
        self._emit("status", text)

    def _emit(self, kind: str, text: str, rank: int | None = None, stream: str = "stdout") -> None:
        self._tell(RunEvent(kind, text, rank, stream))

    def _tell(self, event: RunEvent) -> None:
        if self._error is not None:
            return
        try:
            self._on_event(replace(event, seconds=time.monotonic() - self._started))
        except Exception as error:
            self._error = error
            self._process.cancel()


def start_run(
    request: RunRequest,
    on_event: OnEvent,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    agrees: Callable[[Translated], bool] | None = None,
) -> Run:
    """Start ``request``; returns once its processes are started: after a second, or, where something has to be
    compiled for the first rehearsal, minutes.

    ``on_event`` hears of the preparation on this thread, of the run on a worker thread. ``should_stop`` is asked
    while the run is being prepared; later, `Run.cancel` ends it. ``agrees`` puts a question to the user (a rehearsal
    that cannot be kept away from the user's files); without it such a run does not start. Raises RunNotPossible when
    nothing can be started, and its kind RunCancelled when ``should_stop`` or ``agrees`` said so.
    """
    request = with_its_file(request)
    target = target_named(request.target)
    directory, elsewhere = new_run_directory()

    def say(text: Translated) -> None:
        on_event(RunEvent("status", text.in_language(request.language)))

    if elsewhere is not None:
        say(elsewhere)

    try:
        plan = target.prepare(request, directory, Listener(say, should_stop, agrees))
        if should_stop():
            raise RunCancelled
        process = target.start(plan, directory)
    except BaseException as error:
        target.release()
        release(directory)
        if isinstance(error, OSError):
            raise RunNotPossible(_BROKEN.filled(reason=error)) from error
        raise
    return Run(request, plan, process, directory, on_event)


_STEP = Translated(en="optimizer step {step}", zh_cn="优化器第 {step} 步")
_STEP_OF = Translated(
    en="optimizer step {step} of {steps}", zh_cn="优化器第 {step} 步，共 {steps} 步"
)
_TIMED_OUT = Translated(
    en="no end after {seconds} s: the run is being stopped",
    zh_cn="{seconds} 秒后仍未结束：正在停止运行",
)
_REMOVED = Translated(
    en="the run's folder {path} was removed: the run goes on, and less of it can be explained",
    zh_cn="运行的文件夹 {path} 已被删除：运行继续，但能解释的内容会减少",
)
_UNSEEN = Translated(
    en="The run's files in {path} can no longer be read or written, so it was stopped: {reason}",
    zh_cn="无法再读写 {path} 中的运行文件，已停止运行：{reason}",
)
_UNSEEN_ELSEWHERE = Translated(
    en="The run's files in {path} can no longer be read or written: {reason}. The run goes on; "
    "`ranksafe attach {run}` comes back to it.",
    zh_cn="无法再读写 {path} 中的运行文件：{reason}。运行仍在继续；可用 `ranksafe attach {run}` 重新查看。",
)
_BROKEN = Translated(en="The run cannot start: {reason}", zh_cn="无法启动运行：{reason}")
