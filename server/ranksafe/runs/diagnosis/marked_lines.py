"""Lines of a log as they stood, by the rank that each of them names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ranksafe.runs.log_text.reader import Line, SaidBy

OF_A_FAILURE = re.compile(
    r"^(?:\[default\d+\]:)?\[rank\d+\]:|^\W*\[\d+\]:?\s*$|local_rank|exitcode|Error\b|Exception\b|Traceback|Warning\b|SIG[A-Z]{3}"
)
"""What torch and launchers print of failures."""
_MARK = re.compile(
    r"\[default(?P<default>\d{1,3})\]:?|\[GPU ?(?P<gpu>\d{1,3})\]:?|\b(?:task|proc(?:ess)?) ?(?P<task>\d{1,2})[\]:|]"
    r"|\[?\b(?i:rank)[\"']?[ _]?[=:#]? ?(?P<rank>\d+)\b\]?:?"
)
"""torchrun's ``--tee``, a logger's or a program's own mark, and that of torch's examples."""
_NUMBERED = re.compile(r"^.{0,40}?(?:\[(?P<bare>\d{1,2})\]|\b[rR](?P<letter>\d{1,2})\b)")
"""A number alone, which is a rank's where all of them are there and no other."""
_OF_SIZE = re.compile(r"[\[(](?P<rank>\d{1,3})/(?P<size>[1-9]\d{0,2})[\])]")


def raw_lines(said: SaidBy) -> list[Line]:
    """The beginning and the end of the log as they stood, each line once."""
    return sorted(dict((*said.head, *said.tail)).items())


def rank_reader(texts: Sequence[str]) -> Callable[[str], tuple[int, str] | None]:
    """Tells the rank that a line names, and the line without that mark.

    Marks such as ``[0/2]`` or ``[1]`` count if the lines have one of every rank and none that is no rank's.
    """
    of_size = _OF_SIZE if _has_every_rank(texts) else None
    numbered = _NUMBERED if _are_numbered(texts) else None

    def read(text: str) -> tuple[int, str] | None:
        for pattern in (_MARK, of_size, numbered):
            found = pattern.search(text) if pattern else None
            if found is not None:
                # A mark of --tee and torch's own may both stand there.
                rank = next(int(group) for group in found.groups() if group is not None)
                return rank, (text[: found.start()] + text[found.end() :]).strip()
        return None

    return read


def _has_every_rank(texts: Sequence[str]) -> bool:
    found = [match for text in texts if (match := _OF_SIZE.search(text))]
    sizes = {int(match["size"]) for match in found}
    return len(sizes) == 1 and {int(match["rank"]) for match in found} == set(range(*sizes))


def _are_numbered(texts: Sequence[str]) -> bool:
    """Whether many lines begin with a number, and these are all from 0 to the highest of them."""
    found = [match for text in texts if (match := _NUMBERED.search(text))]
    numbers = {int(match["bare"] or match["letter"]) for match in found}
    return (
        len(numbers) > 1 and numbers == set(range(len(numbers))) and len(found) >= 2 * len(numbers)
    )
