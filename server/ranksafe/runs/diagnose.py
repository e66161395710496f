"""Explain a log by its text alone: ranks by their prefixes, tracebacks, exit codes, known messages."""

from __future__ import annotations

import re

from ranksafe.localization import Language
from ranksafe.runs.explain.evidence import Evidence, Raised, RankEvidence
from ranksafe.runs.explain.explain import explain
from ranksafe.runs.explain.launcher_report import read_launcher
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.explain.signatures import match
from ranksafe.runs.explain.traceback_text import parse_tracebacks
from ranksafe.runs.explain.unfold import spawned_rank
from ranksafe.runs.model import Failure

_PREFIX = re.compile(
    r"\[rank ?(?P<rank>\d+)\]:? ?"  # torch's excepthook and our own log
    r"|\[default(?P<local>\d+)\]:"  # torchrun --tee
    r"|\((?:\w+) (?:rank=(?P<ray>\d+), )?pid=\d+(?:, ip=[\d.]+)?\) ?"  # Ray
    r"|(?P<launcher>\[launcher\]) ?"
)
_LABEL = re.compile(r"(?P<task>\d{1,5}): ")  # srun --label
_LABELLED = re.compile(r"^\d{1,5}: Traceback \(most", re.MULTILINE)
_LAUNCHER_WORDS = ("ChildFailedError", "CalledProcessError", "SignalException")
_COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_ERRORS_LIMIT = 200_000
_RANK_IN_TEXT = re.compile(r"\[Rank (?P<rank>\d+)\]")


def diagnose(text: str, language: Language = "en") -> list[Failure]:
    """The failures a log tells of, root cause first; empty where none is recognised.

    Every file outside installed packages counts as the user's: the log may come from another machine.
    """
    return explain(evidence_of(text), UserCode((), anywhere=True), language)[0]


def evidence_of(text: str) -> Evidence:
    """What a log says, rank by rank. Lines without a rank are the launcher's, or the only rank's."""
    text = _COLORS.sub("", text).replace("\r\n", "\n")
    streams, launcher = _streams(text)
    report = read_launcher(text)
    ranks = {number: _rank(number, stream) for number, stream in streams.items()}
    if all(rank.raised is None or _is_printed(rank) for rank in ranks.values()):
        loose = [each for each in parse_tracebacks(launcher) if each.type not in _LAUNCHER_WORDS]
        if loose:
            number = spawned_rank(loose[0])
            number = report.first or 0 if number is None else number
            ranks.setdefault(number, RankEvidence(number)).raised = loose[0]
            ranks[number].raised_at = -1.0
    for number in report.exits:
        ranks.setdefault(number, RankEvidence(number))
    if not any(rank.raised for rank in ranks.values()) and not report.exits:
        told = _known_line(launcher)
        if told is not None:
            ranks.setdefault(0, RankEvidence(0)).raised = told
    failed = bool(report.exits) or any(rank.raised for rank in ranks.values())
    failed = failed or any(word in text for word in _LAUNCHER_WORDS)
    return Evidence(ranks, launcher=text, returncode=1 if failed else None)


def _is_printed(rank: RankEvidence) -> bool:
    return rank.raised is not None and not rank.raised.frames


def _rank(number: int, stream: list[tuple[int, str]]) -> RankEvidence:
    """The last traceback counts: earlier ones were survived. Line numbers of the log are the only clock."""
    text = "\n".join(line for _, line in stream)
    rank = RankEvidence(number, errors=text[-_ERRORS_LIMIT:])
    found = parse_tracebacks(text)
    rank.raised = found[-1] if found else _known_line(text)
    starts = [at for at, line in stream if "Traceback (most" in line or "rror" in line]
    rank.raised_at = float(starts[0]) if starts else None
    return rank


def _known_line(text: str) -> Raised | None:
    """A message of C++ or of a scheduler that is known by itself; one that is no mere consequence, if there is one."""
    consequence: Raised | None = None
    for line in text.splitlines():
        known = match(line)
        if known is None:
            continue
        raised = Raised(type="", message=line.strip(), frames=())
        if not known[0].secondary:
            return raised
        consequence = consequence or raised
    return consequence


def _streams(text: str) -> tuple[dict[int, list[tuple[int, str]]], str]:
    """Each rank's lines with their numbers, prefixes removed, and the lines of no rank."""
    streams: dict[int, list[tuple[int, str]]] = {}
    launcher: list[str] = []
    labelled = _LABELLED.search(text) is not None
    for at, line in enumerate(text.split("\n")):
        rank, rest = _without_prefix(line, labelled)
        if rank is None:
            launcher.append(rest)
        else:
            streams.setdefault(rank, []).append((at, rest))
    return streams, "\n".join(launcher)


def _without_prefix(line: str, labelled: bool) -> tuple[int | None, str]:
    """``labelled``: the log has srun's labels, which are too like other text to be taken for granted."""
    rank: int | None = None
    if labelled and (label := _LABEL.match(line)):
        rank, line = int(label["task"]), line[label.end() :]
    while found := _PREFIX.match(line):
        groups = found.groupdict()
        number = groups["rank"] or groups["ray"] or groups["local"]
        if number is not None:
            rank = int(number)
        line = line[found.end() :]
    if rank is None and (named := _RANK_IN_TEXT.search(line)):
        rank = int(named["rank"])
    return rank, line
