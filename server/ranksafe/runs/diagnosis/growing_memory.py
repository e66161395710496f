"""Whether a rank that was killed had printed that its memory grew."""

from __future__ import annotations

import re
from dataclasses import replace

from ranksafe.localization import Translated, both
from ranksafe.runs.diagnosis.marked_lines import rank_reader, raw_lines
from ranksafe.runs.log_text.reader import SaidBy
from ranksafe.runs.model import Failure

_KILLED = frozenset({"killed", "host-out-of-memory", "worker-killed"})
_MEMORY = re.compile(
    r"\b(?P<name>(?:max_?)?(?:rss|host_?mem(?:ory)?|cpu_?mem(?:ory)?|ram|mem(?:ory)?(?:_?usage)?)(?:_?(?:mb|gb|mib|gib))?)"
    r"\b[\"']?\W{0,3}(?P<size>\d+(?:\.\d+)?) ?(?P<unit>[KMG]i?B|[KMG])?",
    re.IGNORECASE,
)
_OF_GPU = re.compile(r"gpu|cuda|alloc", re.IGNORECASE)
_GREW = 1.5
_LEAST = 3


def with_growing_memory(failure: Failure, said: SaidBy) -> Failure:
    """A killed rank with the first and the last size that it had printed, where these only grew."""
    if failure.kind not in _KILLED or not failure.root_cause:
        return failure
    lines = [text for _, text in raw_lines(said)]
    read = rank_reader(lines)
    printed: dict[str, list[tuple[float, str]]] = {}
    for line in lines:
        found = _MEMORY.search(line)
        marked = read(line)
        if found is None or _OF_GPU.search(line):
            continue
        if marked is not None and failure.rank is not None and marked[0] != failure.rank:
            continue
        shown = found["size"] + (found["unit"] or "")
        printed.setdefault(found["name"], []).append((float(found["size"]), shown))
    for name, sizes in printed.items():
        amounts = [amount for amount, _ in sizes]
        if (
            len(amounts) >= _LEAST
            and amounts == sorted(amounts)
            and amounts[-1] > _GREW * amounts[0]
        ):
            told = _GROWING.filled(name=name, first=sizes[0][1], last=sizes[-1][1])
            return replace(failure, explanation=both(failure.explanation, told))
    return failure


_GROWING = Translated(
    en="The log shows its memory growing ({name}: from {first} to {last}), which speaks for a lack of memory: look for "
    "what is kept from step to step.",
    zh_cn="日志显示其内存不断增长（{name}：从 {first} 到 {last}），说明很可能是内存不足：请查找逐步累积的内容。",
)
