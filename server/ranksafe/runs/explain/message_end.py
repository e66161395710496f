"""Where the message of an exception ends, which has no end mark of its own."""

from __future__ import annotations

import re


def is_one_line(name: str, first: str) -> bool:
    """Whether an exception of this type, or with this first line, never has a second one."""
    return _ONE_LINE.fullmatch(name) is not None or _OF_ONE_LINE.match(first) is not None


def ends_message(line: str) -> bool:
    """Whether the line looks like a log's or a launcher's, and not like the rest of a message."""
    return _NOT_A_MESSAGE.match(line) is not None


_NOT_A_MESSAGE = re.compile(
    r"^(?:[WEIF]\d{4} \d\d:|\d{1,2}-[A-Z][a-z]{2}-\d{4} |\[[WEIF]\d* |\[?\d{4}-\d\d-\d\d[ T]|\d\d:\d\d:\d\d[.,]\d+ +\|"
    r"|\[\d\d:\d\d:\d\d|\S+\.py:\d+: \w*Warning: |Time to load \w+ op: |\[rank: \d+\] Child process"
    r"|(?:ERROR|WARNING|INFO)[: ]|=+$|-{10,}$|\[rank ?\d+\]|Exception in thread |Exception ignored in"
    r"|terminate called|\[W\d* |wandb: |\(raylet|slurmstepd|srun: |sbatch: |Process \w+-\d+:$|Killed$|Terminated$"
    r"|\"{3}$)"
)
_OF_ONE_LINE = re.compile(
    r"attempted relative import |'[\w.]+' object (?:is not|has no attribute '\w+'$)"
)
_ONE_LINE = re.compile(
    r"(?:Key|Index|Name|UnboundLocal|ZeroDivision|Recursion|JSONDecode|UnicodeDecode|ModuleNotFound|FileNotFound|Syntax"
    r"|Indentation|Tab|OutOfMemory|DistNetwork|Permission|IsADirectory|NotADirectory|FileExists)Error"
)
