"""Explain a log by its text alone: ranks by their prefixes, tracebacks, exit codes, known messages."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable
from dataclasses import replace

from ranksafe.localization import Language
from ranksafe.runs.diagnosis.common_failure import (
    LAUNCHER_WORDS,
    RESTARTED,
    follows,
    is_open_ended,
    kind_of,
    ranks_alike,
)
from ranksafe.runs.diagnosis.loose_tracebacks import NO_RANK, add_loose
from ranksafe.runs.diagnosis.lost_threads import add_threads, of_threads
from ranksafe.runs.diagnosis.own_lines import OwnLines
from ranksafe.runs.diagnosis.survived import (
    counts_on,
    final,
    is_recovered,
    last_traceback,
    went_on,
)
from ranksafe.runs.diagnosis.whole_log import facts_of_the_whole, finished
from ranksafe.runs.explain.deaths import CRASHES
from ranksafe.runs.explain.evidence import Evidence, Raised, RankEvidence, fatal_frames
from ranksafe.runs.explain.explain import explain
from ranksafe.runs.explain.launcher_report import LauncherReport, read_launcher
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.explain.printed import is_exception, printed_failure
from ranksafe.runs.explain.signatures import with_notes
from ranksafe.runs.explain.traceback_text import (
    cut_traceback,
    locate_tracebacks,
    loose_lines,
    outside,
)
from ranksafe.runs.log_text.reader import Line, LogReader, SaidBy
from ranksafe.runs.model import Failure

_BAD_EXIT = re.compile(
    r"^srun: error: .*: Exited with exit code [1-9]|exits with return code = -?[1-9]"
    r"|Error executing job with overrides: |^Exited with exit code [1-9]\d*\.$"
    r"|^Set the environment variable HYDRA_FULL_ERROR=1|Got fatal signal from worker processes"
    r"|^Error: failed to run torchrun ",
    re.MULTILINE,
)
_SAYS_SO = re.compile(
    _BAD_EXIT.pattern
    + r"|failed \(exitcode: |ChildFailedError|returned non-zero exit status|died with <Signals"
    r"|oom[-_]kill event|: Out Of Memory|OOMKilled|DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE|JOB REQUEUE)"
    r"|Node failure on |watchdog thread terminated with exception"
    r"|(?:mpirun|mpiexec|prterun) (?:noticed that process rank|detected that one or more processes exited)",
    re.MULTILINE,
)
_STOPPED_AT_ONCE = frozenset({-4, -7, -8, -9, -11})
"""Signals after which no traceback can be the reason."""
_STOPPED = "stopped-by-launcher"
_TIMEOUT = "collective-timeout"
_SIGNAL = "SignalException"
"""Of torch.distributed.elastic."""
_LAST_LINES = 6
_ENDED_WELL = re.compile(
    r"^\W*(?:exit|return)[ _-]?(?:code|status)\W{1,3}0\W*$|\[COMMAND_EXIT_CODE=\"0\"\]",
    re.MULTILINE | re.IGNORECASE,
)
"""What scripts and ``script`` (util-linux) write under the output of a command that went well."""


def diagnose(text: str, language: Language = "en") -> list[Failure]:
    """The failures a log tells of, root cause first; empty where none is recognised.

    Every file outside installed packages counts as the user's: the log may come from another machine.
    """
    reader = LogReader()
    reader.feed(text.encode("utf-8", "surrogatepass"))
    reader.finish()
    return diagnose_said(reader.said(), language)


def diagnose_said(said: SaidBy, language: Language = "en") -> list[Failure]:
    """The same for a log that was read piece by piece.

    Of several launches the last one counts, unless it neither failed nor came to anything.
    """
    failures = _of_one_launch(said, language)
    if failures or said.earlier is None or said.has_bars or went_on(0, said):
        return failures
    return _of_one_launch(said.earlier, language)


def _of_one_launch(said: SaidBy, language: Language) -> list[Failure]:
    evidence = evidence_of(said)
    evidence.alike = ranks_alike(evidence, said)
    evidence.open_ended = is_open_ended(evidence, said)
    own = OwnLines(said)
    evidence.last_lines = own.last_of_ranks()
    evidence.beginning = _joined(said.head)
    failures, _ = explain(evidence, UserCode((), anywhere=True), language)
    for failure in failures[:1]:
        facts = [
            *own.facts(failure, evidence),
            *facts_of_the_whole(failure, said, evidence.launcher),
        ]
        failures[0] = with_notes(failure, "notes_of_logs", facts, evidence)
    if failures and evidence.alike:
        failures = [replace(failures[0], rank=None)]
    return [finished(failure, said, evidence.launcher) for failure in failures]


def evidence_of(said: SaidBy) -> Evidence:
    """What a log says, rank by rank. Lines without a rank are the launcher's, or the only rank's."""
    texts = {number: _joined(lines) for number, lines in said.ranks.items()}
    launcher = "\n".join(_joined(lines) for lines in said.others)
    reports = [launcher, *(text for text in texts.values() if "exitcode" in text)]
    recovered = is_recovered(said)
    ended = not recovered and _says_so(said)
    if not ended:
        # Attempts before the last one ended nothing.
        reports = [] if recovered else [RESTARTED.split(text)[-1] for text in reports]
    report = read_launcher("\n".join(reports))
    # What nothing caught ended its rank for good, unless the ranks were started anew.
    restarted = recovered or RESTARTED.search(launcher) is not None
    fatal = set() if restarted else said.uncaught
    ranks = {
        number: _rank(number, texts[number], said, report, ended, uncaught=number in fatal)
        for number in said.ranks
    }
    if all(
        rank.raised is None or _only_follows(rank) or not rank.raised.frames
        for rank in ranks.values()
    ):
        add_loose(ranks, said, report, launcher, ended=ended)
    add_threads(ranks, said)
    caused = any(rank.raised and not _only_follows(rank) for rank in ranks.values())
    _add_reported(ranks, report, caused=caused)
    _add_stack(ranks, launcher, report)
    if not caused and not _by_signal(report):
        _add_printed(ranks, said, report, ended)
        if any(rank.raised and not _only_follows(rank) for rank in ranks.values()):
            ranks = {number: rank for number, rank in ranks.items() if rank.raised is not None}
    if not report.exits and all(
        rank.raised is None or kind_of(rank.raised) == _STOPPED for rank in ranks.values()
    ):
        _add_stop(ranks, said)
    if not ended and not any(rank.raised for rank in ranks.values()):
        _add_cut_off(ranks, said)
    last = said.tail[-1][1].strip() if said.tail and not ranks and not ended else ""
    if is_exception(last) and not any(word in last for word in LAUNCHER_WORDS):
        ranks[NO_RANK] = RankEvidence(NO_RANK, raised=Raised("", last, ()))
    if not ended and _ENDED_WELL.search(_joined(said.tail[-_LAST_LINES:])):
        ranks = {}
    failed = bool(report.exits) or any(rank.raised for rank in ranks.values())
    everything = "\n".join([launcher, *texts.values()])
    failed = failed or any(word in everything for word in LAUNCHER_WORDS)
    failed = failed or _BAD_EXIT.search(everything) is not None
    if not failed:
        return Evidence({}, launcher="", returncode=None)
    return Evidence(ranks, launcher="\n".join(reports), returncode=1)


def _add_reported(ranks: dict[int, RankEvidence], report: LauncherReport, *, caused: bool) -> None:
    """What the launcher tells of ranks: exit codes and processes."""
    for number, code in report.exits.items():
        # Where one rank's error is in the log, bare exit codes of others say nothing.
        if code < 0 or not caused:
            ranks.setdefault(number, RankEvidence(number))
    for number, pid in report.pids.items():
        if number in ranks:
            ranks[number].pid = pid


def _by_signal(report: LauncherReport) -> bool:
    """Whether a signal ended the run: those that the launcher stopped after another rank's end are no reason."""
    signals = {code for code in report.exits.values() if code < 0}
    if any(code > 0 for code in report.exits.values()):
        signals.discard(-signal.SIGTERM)
    return bool(signals)


def ended_badly(said: SaidBy) -> bool:
    """Whether a launcher or a scheduler says that a rank failed, or that the job is over."""
    return not is_recovered(said) and _says_so(said)


def _says_so(said: SaidBy) -> bool:
    texts = (_joined(lines) for lines in (*said.others, *said.ranks.values()))
    # What came before the ranks were started anew ended nothing.
    return any(_SAYS_SO.search(RESTARTED.split(text)[-1]) for text in texts)


def _rank(
    number: int, text: str, said: SaidBy, report: LauncherReport, ended: bool, *, uncaught: bool
) -> RankEvidence:
    lines = said.ranks[number]
    rank = RankEvidence(number, errors=text)
    found = every = lines.once(locate_tracebacks)
    if not ended and not uncaught:
        found = final(found, said, ended)
    kept = {each.first for each in found if not each.ignored}
    free = outside(lines, (each for each in every if each.first not in kept))
    printed = printed_failure(free, _survived(free, said, ended))
    chosen = last_traceback(found)
    if report.exits.get(number) in _STOPPED_AT_ONCE:
        chosen = None
    if chosen is not None:
        rank.raised, rank.raised_at = chosen.raised, float(chosen.first)
    if "Fatal Python error: " in text:
        rank.fatal = fatal_frames(text)
    if printed is not None and (
        chosen is None or (follows(chosen.raised) and not printed.secondary)
    ):
        rank.raised, rank.raised_at = printed.raised, float(printed.at)
    rank.thread_errors = of_threads(every, rank)
    return rank


def _survived(lines: list[Line], said: SaidBy, ended: bool) -> Callable[[int, bool], bool]:
    """Whether the run went on after a printed message; after a warning its own stream's steps tell."""
    return lambda at, warns: (not ended and went_on(at, said)) or (warns and counts_on(at, lines))


def _add_printed(
    ranks: dict[int, RankEvidence], said: SaidBy, report: LauncherReport, ended: bool
) -> None:
    """A message of a launcher, a scheduler or of C++ that is known by itself."""
    for lines in said.others:
        free = lines.once(loose_lines)
        printed = printed_failure(free, _survived(free, said, ended))
        if printed is None or (report.exits and printed.signature.kind == _STOPPED):
            continue
        raised = (rank.raised for rank in ranks.values() if rank.raised is not None)
        if "Aborted" in printed.raised.message and _TIMEOUT in map(kind_of, raised):
            # The watchdog's way to end its rank.
            continue
        number = report.first if report.first is not None else NO_RANK
        rank = ranks.setdefault(number, RankEvidence(number))
        if rank.raised is None or (_only_follows(rank) and not printed.secondary):
            rank.raised, rank.raised_at = printed.raised, float(printed.at)


def _add_stop(ranks: dict[int, RankEvidence], said: SaidBy) -> None:
    """The signal that ended the launcher, where it could not even say that it came."""
    for lines in said.others:
        for each in lines.once(locate_tracebacks):
            if each.raised.type == _SIGNAL:
                raised = replace(each.raised, frames=(), context=None)
                ranks[NO_RANK] = RankEvidence(NO_RANK, raised=raised, raised_at=float(each.first))
                return


def _add_cut_off(ranks: dict[int, RankEvidence], said: SaidBy) -> None:
    """Tracebacks that nothing caught and in whose middle the log ends."""
    for number in said.uncaught & ranks.keys():
        ranks[number].raised = cut_traceback(said.ranks[number])
    if ranks or not said.others:
        return
    last = max(said.others, key=lambda lines: lines[-1][0] if lines else 0)
    if last and said.tail and last[-1][0] == said.tail[-1][0] and (cut := cut_traceback(last)):
        ranks[NO_RANK] = RankEvidence(NO_RANK, raised=cut)


def _add_stack(ranks: dict[int, RankEvidence], launcher: str, report: LauncherReport) -> None:
    """The stack that faulthandler printed of the only rank that crashed; it names no rank itself."""
    crashed = [number for number, code in report.exits.items() if code in CRASHES]
    if len(crashed) == 1 and "Fatal Python error: " in launcher:
        ranks[crashed[0]].fatal = fatal_frames(launcher)


def _only_follows(rank: RankEvidence) -> bool:
    return rank.raised is not None and follows(rank.raised)


def _joined(lines: Iterable[Line]) -> str:
    return "\n".join(text for _, text in lines)
