"""Types that a kernel of the CPU refuses, which computes for the simulated devices: would CUDA's refuse them, too?

`cpu_refusals.json` has what was measured on a device. A refusal that was not measured counts as the CPU's own where the
message names the CPU, or a library of its: a device says it in words of its own, if it says it.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

_REFUSAL = re.compile(r"\"(?P<kernel>\w+)\" not implemented for '(?P<type>\w+)'")
_SMALL_FLOAT = re.compile(r"Half|BFloat16|ComplexHalf|Float[84]\w*")
"""The CPU's kernels know fewer of them than CUDA's, so nothing is concluded from those that were measured."""
_OF_THE_CPU = re.compile(
    r"\bMKL\b|\b(?i:onednn|mkldnn)\b"
    r"|\bon (?:the )?CPU (?:does not|doesn't|is not|only)|not (?:support|implement)\w*\b[^.\n]{0,60}\bon (?:the )?CPU\b"
)
_LIKE = {
    **dict.fromkeys(("Byte", "Char", "Short", "Int"), "Long"),
    "Double": "Float",
    "ComplexDouble": "ComplexFloat",
}
"""Kernels are compiled for groups of types; those that were measured stand for their group."""


def refused_by_the_cpu(text: str) -> bool:
    """Whether an exception's "Type: message" is the refusal of a kernel of the CPU that says nothing of CUDA's."""
    found = _REFUSAL.search(text)
    if found is None:
        return _OF_THE_CPU.search(text) is not None
    kernel, kind = found["kernel"], found["type"]
    if _SMALL_FLOAT.fullmatch(kind):
        return True
    kind = _LIKE.get(kind, kind)
    measured = _measured()
    if kind in measured["cuda_refuses_too"].get(kernel, ()):
        return False
    return "cpu" in kernel or kind in measured["cuda_computes"].get(kernel, ())


@functools.cache
def _measured() -> Mapping[str, Mapping[str, Sequence[str]]]:
    text = Path(__file__).with_name("cpu_refusals.json").read_text(encoding="utf-8")
    data: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(text)
    return data
