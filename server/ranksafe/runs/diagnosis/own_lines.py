"""What the ranks of a log say by their own lines, those that are no failure's: facts that notes may ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.log_text.progress import is_end, is_progress
from ranksafe.runs.log_text.reader import SaidBy
from ranksafe.runs.model import Failure

_OF_A_FAILURE = re.compile(
    r"^(?:\[default\d+\]:)?\[rank\d+\]:|^\W*\[\d+\]:?\s*$|local_rank|exitcode|Error\b|Exception\b|Traceback|Warning\b|SIG[A-Z]{3}"
    r"|^(?:mpirun|mpiexec|prterun|srun|slurmstepd)\b"
)
"""What torch, launchers and schedulers print of failures."""
_MARK = re.compile(
    r"\[default(?P<default>\d{1,3})\]:?|\[GPU ?(?P<gpu>\d{1,3})\]:?|\b(?:task|proc(?:ess)?) ?(?P<task>\d{1,2})[\]:|]"
    r"|\[?\b(?i:rank)[\"']?[ _]?[=:#]? ?(?P<rank>\d+)\b\]?:?"
)
"""torchrun's ``--tee``, a logger's or a program's own mark, and that of torch's examples."""
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d|\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?|\bpid\W{0,2}\d+", re.IGNORECASE
)
_THINGS = (
    r"batch(?:es)?|steps?|iterations?|samples?|examples?|pairs?|rows?|items?|records?|doc(?:ument)?s?|files?|shards?"
    r"|parts?|images?|tokens?|words?|class(?:es)?|labels?|sequences?|sentences?|episodes?|users?|graphs?|patients?"
    r"|utterances?|clips?|entries|points?|windows?|reads?|params?|parameters?|lines?|vocab(?:ulary)?|size|len(?:gth)?"
)
_COUNT = re.compile(
    rf"(?P<before>\b(?<!\d,)\d[\d,_]*) (?:\w+ )?(?:{_THINGS})\b"
    rf"|\b(?:{_THINGS})\b(?: of| is|:| =|=|)\W?(?P<after>\d[\d,_]*)\b",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"\b(?:steps|batches|iterations)\b\W{0,3}\d|(?<!of )\b\d+ (?:steps|batches|iterations)\b",
    re.IGNORECASE,
)
"""How many there are, and not at which one the rank is."""
_EPOCH = re.compile(r"\bepoch\W{0,3}\d+", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_FRACTION = re.compile(r"\d\.\d")
_LONGEST = 120
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class OwnLine:
    """A line that a program printed."""

    at: int
    text: str
    rank: int | None
    """The rank that it names."""
    words: str
    """The line without that mark."""


class OwnLines:
    """The beginning and the end of a log, read once."""

    def __init__(self, said: SaidBy) -> None:
        lines = sorted(dict((*said.head, *said.tail)).items())
        printed = [(at, text.strip()) for at, text in lines if not _OF_A_FAILURE.search(text)]
        self.printed = [OwnLine(at, text, *_named_rank(text)) for at, text in printed]
        self._end = said.tail[0][0] if said.tail else 0

    def last_of_ranks(self) -> dict[int, str]:
        """What each rank that a line names printed last."""
        named = (each for each in self.printed if each.rank is not None)
        return {each.rank or 0: each.text[:_LONGEST] for each in named}

    def facts(self, failure: Failure, evidence: Evidence) -> Iterator[str]:
        """What these lines show next to a failure."""
        several = len(evidence.last_lines.keys() | evidence.ranks.keys()) > 1
        for rank, line in evidence.last_lines.items():
            if rank == failure.rank and several:  # else lines that name no rank are its, too
                yield f"rank {rank} printed last: {line}"
        done = {
            each.rank: each.text
            for each in self.printed
            if each.at >= self._end and each.rank is not None and is_end(each.text)
        }
        if len(done) == 1 and failure.rank not in done:
            ((rank, text),) = done.items()
            yield f"rank {rank} had finished: {text[:_LONGEST]}"
        if told := self._differing_counts():
            ranks = sorted(told.items())[:_SHOWN]
            yield "counts differ: " + ", ".join(
                f'rank {rank}: "{text[:_LONGEST]}"' for rank, text in ranks
            )

    def _differing_counts(self) -> dict[int, str]:
        """The last line of one form that every rank printed, where a count in it is not the same; else nothing."""
        forms: dict[str, dict[int, tuple[str, tuple[str, ...]]]] = {}
        ranks: set[int] = set()
        for line in self.printed:
            if line.rank is None or (is_progress(line.text) and not _TOTAL.search(line.text)):
                continue
            ranks.add(line.rank)
            words = _TIME.sub("", line.words)
            if _COUNT.search(words) and not _FRACTION.search(words):
                epoch = _EPOCH.search(words)
                form = f"{_NUMBER.sub('#', words)} {epoch[0] if epoch else ''}"
                counts = tuple(
                    found["before"] or found["after"] for found in _COUNT.finditer(words)
                )
                forms.setdefault(form, {})[line.rank] = line.text, counts
        for last in reversed(forms.values()):
            if last.keys() == ranks and len({counts for _, counts in last.values()}) > 1:
                return {rank: text for rank, (text, _) in last.items()}
        return {}


def _named_rank(text: str) -> tuple[int | None, str]:
    """The rank that a line names, and the line without that mark."""
    found = _MARK.search(text)
    if found is None:
        return None, text
    # A mark of --tee and torch's own may both stand there.
    rank = next(int(group) for group in found.groups() if group is not None)
    return rank, (text[: found.start()] + text[found.end() :]).strip()
