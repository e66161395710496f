"""Failures that are printed and not raised: by C++, by NCCL, by the kernel, by schedulers and launchers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.signatures import Signature, match
from ranksafe.runs.log_text.progress import is_completion, is_progress

_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Iteration|Killed)(?::|\s*$)"
)
_WARNING = re.compile(r"Warning\b|(?<!NCCL )\bWARN(?:ING)?\b|^\[?W\d*[ \]]|\[W\d* ")
_CALLS_ITSELF_ERROR = (
    r"^[EFC] ?\d{4}-?\d\d"
    r"|^\W{0,3}(?:\S+ )?(?:ERROR|FATAL|CRITICAL|Fatal|Error|error)\b(?: error)?\W? ?:? ?\S"
)
_IS_ERROR = re.compile(_CALLS_ITSELF_ERROR)
_COMPLAINS = re.compile(
    f"{_CALLS_ITSELF_ERROR}"
    r"|\b(?i:not found|does not exist|no such|failed|cannot|can't|could not|couldn't|unable to|invalid|aborting"
    r"|exiting|stopping|unknown|unsupported|unrecognized|missing|must be|must not|not allowed|giving up|refus\w+"
    r"|corrupt\w*|mismatch"
    r"|denied|exceeds|out of range|is empty|no (?:samples|data|files|such)|expected)\b"
)
_COMPLAINT = 300
_OF_A_LAUNCHER = re.compile(
    r"^(?:srun|slurmstepd|sbatch|wandb)\b|^frame #\d+: |atexit"
    r"|exit(?:ed|s)? (?:with )?(?:return )?code|torch\.distributed"
)
_MESSAGE_LINES = 4
_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Printed:
    """A known message among a stream's lines."""

    raised: Raised
    """With an empty type: nothing was raised."""
    at: int
    """Number of its line."""
    signature: Signature

    @property
    def secondary(self) -> bool:
        """Whether it only tells of another rank's end."""
        return self.signature.secondary


def is_exception(line: str) -> bool:
    """Whether the line reads like the last one of a traceback."""
    return _EXCEPTION.match(line) is not None


def last_complaint(lines: Sequence[str]) -> str | None:
    """The last line that calls itself an error, as programs print before they leave with a status."""
    said = (line.strip() for line in reversed(lines))
    return next(
        (
            line[:_COMPLAINT]
            for line in said
            if _COMPLAINS.search(line) and not _OF_A_LAUNCHER.search(line)
        ),
        None,
    )


def ends_in_error(lines: Sequence[str]) -> bool:
    """Whether one of the last lines calls itself an error, and no step or end of a run comes after it."""
    for after, line in enumerate(line.strip() for line in reversed(lines) if line.strip()):
        if after > _MESSAGE_LINES or is_progress(line) or is_completion(line):
            return False
        if is_exception(line) or _IS_ERROR.search(line):
            return True
    return False


def printed_failure(
    lines: Sequence[tuple[int, str]], went_on_after: Callable[[int, bool], bool] | None = None
) -> Printed | None:
    """The first known message that is no mere consequence or warning; else a warning, else a consequence.

    ``went_on_after``: whether the run was still going after a line, which is a warning or not; what did not stop it is
    no failure, unless it changes what the run is worth (training on the CPU unnoticed).
    """
    best: tuple[int, Printed] | None = None
    for index, (at, line) in enumerate(lines):
        found = _known(lines, index)
        if found is None:
            continue
        text, known = found
        warns = _WARNING.search(line) is not None
        if not known.matters_anyway and went_on_after is not None and went_on_after(at, warns):
            continue
        weight = 2 if known.secondary else 1 if warns else 0
        if best is None or weight < best[0]:
            half = _LONGEST // 2
            shown = text if len(text) <= _LONGEST else f"{text[:half]} … {text[-half:]}"
            raised = Raised(type="", message=shown, frames=())
            best = (weight, Printed(raised, at, known))
            if weight == 0:
                break
    return best[1] if best else None


def _known(lines: Sequence[tuple[int, str]], index: int) -> tuple[str, Signature] | None:
    """What is known of a line, and the message: with the lines under it, where they tell more."""
    text = lines[index][1].strip()
    if not text:
        return None
    if not _EXCEPTION.match(text):
        found = match(text, printed=True)
        return (text, found[0]) if found else None
    following = [line for _, line in lines[index + 1 : index + _MESSAGE_LINES]]
    together = "\n".join([text, *following])
    alone, found = match(text), match(together)
    if found is None:
        return None
    return (text if alone and alone[0] is found[0] else together, found[0])
