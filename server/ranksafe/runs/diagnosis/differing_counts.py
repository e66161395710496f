"""Counts that the ranks of a log printed in the same words and that are not the same: batches, samples, words."""

from __future__ import annotations

import re
from dataclasses import replace

from ranksafe.localization import Translated, both
from ranksafe.runs.diagnosis.marked_lines import OF_A_FAILURE, rank_reader, raw_lines
from ranksafe.runs.log_text.progress import is_progress
from ranksafe.runs.log_text.reader import SaidBy
from ranksafe.runs.model import Failure

_DEPENDS = frozenset(
    {
        *("collective-timeout", "peer-lost", "rank-left-early", "collective-shape-mismatch"),
        *("collective-mismatch", "collective-failed", "models-differ-between-ranks"),
    }
)
"""Kinds of failure that ranks with different amounts of work, or with different sizes, run into."""
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d|\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?|\bpid\W{0,2}\d+", re.IGNORECASE
)
_THINGS = (
    r"batch(?:es)?|steps?|iterations?|samples?|examples?|pairs?|rows?|items?|records?|doc(?:ument)?s?|files?|shards?"
    r"|parts?|images?|tokens?|words?|class(?:es)?|labels?|sequences?|sentences?|episodes?|users?|graphs?|patients?"
    r"|utterances?|clips?|entries|points?|windows?|reads?|params?|parameters?|lines?|vocab(?:ulary)?|size|len(?:gth)?"
)
_COUNT = re.compile(
    rf"(?P<before>\b\d[\d,_]*) (?:\w+ )?(?:{_THINGS})\b|\b(?:{_THINGS})\b(?: of| is|:| =|=|)\W?(?P<after>\d[\d,_]*)\b",
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


def with_differing_counts(failure: Failure, said: SaidBy) -> Failure:
    """A failure of ranks that did not keep together, with the counts in which their own lines differ."""
    if not failure.root_cause or failure.kind not in _DEPENDS:
        return failure
    told = differing_counts(said)
    if told is None:
        return failure
    listed = ", ".join(
        f'rank {rank}: "{text[:_LONGEST]}"' for rank, text in sorted(told.items())[:_SHOWN]
    )
    sentence = _DIFFER.filled(said=listed)
    return replace(failure, explanation=both(failure.explanation, sentence))


def differing_counts(said: SaidBy) -> dict[int, str] | None:
    """The last line of one form that every rank that the log names printed, where a count in it is not the same."""
    printed = [text.strip() for _, text in raw_lines(said) if not OF_A_FAILURE.search(text)]
    read = rank_reader(printed)
    forms: dict[str, dict[int, tuple[str, tuple[str, ...]]]] = {}
    ranks: set[int] = set()
    for line in printed:
        marked = read(line) if _TOTAL.search(line) or not is_progress(line) else None
        if marked is None:
            continue
        rank, text = marked
        ranks.add(rank)
        text = _TIME.sub("", text)
        if _COUNT.search(text) and not _FRACTION.search(text):
            epoch = _EPOCH.search(text)
            form = f"{_NUMBER.sub('#', text)} {epoch[0] if epoch else ''}"
            forms.setdefault(form, {})[rank] = line, _counts(text)
    for last in reversed(forms.values()):
        if last.keys() == ranks and len({counts for _, counts in last.values()}) > 1:
            return {rank: line for rank, (line, _) in last.items()}
    return None


def _counts(text: str) -> tuple[str, ...]:
    return tuple(found["before"] or found["after"] for found in _COUNT.finditer(text))


_DIFFER = Translated(
    en="The ranks' own lines differ in a count ({said}): see whether that is why they did not keep together.",
    zh_cn="各 rank 自己的输出在数量上不同（{said}）：请查看这是否是它们不一致的原因。",
)
