"""Out of GPU memory: what was asked, who held what, and what to try in order.

The forms of the message are told in `gpu_memory.json`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ranksafe.localization import Translated, both
from ranksafe.runs.explain.launcher_report import read_launcher
from ranksafe.runs.explain.signatures.signature import Known, rows_that_hold, sentences

KIND = "cuda-out-of-memory"

_SIZE = r"(?<![\d.])(\d+(?:\.\d*)? (?:[KMGT]i?B|bytes?))"
_ASKED = re.compile(rf"[Tt]ried to allocate {_SIZE}")
_DEVICE = re.compile(r"\([GNX]PU (\d+);|GPU (\d+) has a total capaci?ty")
_TOTAL = re.compile(rf"{_SIZE} total capacity|total capaci?ty of {_SIZE}")
_FREE = re.compile(rf"{_SIZE} free[;,)]|of which {_SIZE} is free")
_ALLOCATED = re.compile(rf"{_SIZE} already allocated|{_SIZE} is allocated by PyTorch")
_RESERVED = re.compile(rf"{_SIZE} (?:reserved in total by PyTorch|cached)")
_UNUSED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_IN_USE = re.compile(rf"this process has {_SIZE} memory in use")
_OTHER = re.compile(rf"\bProcess (\d+) has {_SIZE} memory in use")
_SETTING_NAMED = re.compile(r"\bPYTORCH_(?:[A-Z]+_)?ALLOC_CONF\b")
_CAPITAL = re.compile(r"\A[A-Z](?=[a-z]*\b)")
"""Of an ordinary word, and not of a name such as ZeRO."""
_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024.0}


@dataclass(frozen=True, slots=True)
class Size:
    """An amount of memory, as it was written."""

    text: str

    @property
    def mib(self) -> float:
        """In MiB."""
        number, unit = self.text.split(" ", 1)
        return float(number) * _UNITS.get(unit[0], 1 / 1024**2)


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """The numbers of one message; None for what its form does not have."""

    asked: Size | None
    device: int | None
    total: Size | None
    free: Size | None
    allocated: Size | None
    unused: Size | None
    """Reserved by the caching allocator and not in use."""
    in_use: Size | None
    """Held by the process that failed."""
    setting: str
    """The environment variable of the allocator's settings."""
    others: dict[int, Size] = field(default_factory=dict)
    """Held by other processes, by their ids."""

    @property
    def held(self) -> float | None:
        """What the process that failed holds, in MiB, as far as the message tells."""
        if self.in_use is None and self.allocated is not None:
            return self.allocated.mib + (self.unused.mib if self.unused else 0.0)
        return None if self.in_use is None else self.in_use.mib


def read_gpu_memory(text: str) -> GpuMemory:
    """The numbers of a message; where ranks wrote several, of the first."""
    device, setting = _DEVICE.search(text), _SETTING_NAMED.search(text)
    allocated, reserved, unused = (_size(each, text) for each in (_ALLOCATED, _RESERVED, _UNUSED))
    if unused is None and allocated is not None and reserved is not None:
        unused = Size(f"{max(0.0, reserved.mib - allocated.mib):.0f} MiB")
    in_use, others = _size(_IN_USE, text), {int(pid): Size(n) for pid, n in _OTHER.findall(text)}
    if in_use is None and allocated is not None:
        in_use = _own(others, allocated)
    total = _size(_TOTAL, text)
    if total is not None:
        # WSL's driver wraps around, and an allocator counts what it has lent to the machine's memory.
        in_use, allocated = (
            each if each is None or each.mib <= total.mib else None for each in (in_use, allocated)
        )
    return GpuMemory(
        asked=_size(_ASKED, text),
        device=int(device[1] or device[2]) if device else None,
        total=total,
        free=_size(_FREE, text),
        allocated=allocated,
        unused=unused,
        in_use=in_use,
        setting=setting[0] if setting else "PYTORCH_NPU_ALLOC_CONF" if "NPU " in text else _SETTING,
        others=others,
    )


def explain_gpu_memory(text: str, known: Known, action: Translated | None) -> Translated:
    """What the numbers mean, and what to try in order.

    ``known``: tells the run's own processes, too; ``action``: how to need less of what the memory was for; None: in
    every way that the run does not go already.
    """
    memory = read_gpu_memory(text)
    ours: dict[int, int] = {}
    if (evidence := known.evidence) is not None:
        ours = {pid: rank for rank, pid in read_launcher(evidence.launcher).pids.items()}
        ours |= {each.pid: each.rank for each in evidence.ranks.values() if each.pid is not None}
    said = sentences(_ROWS, _facts(memory, ours))
    already = {row.kind: clause for row, clause in rows_that_hold("gpu_memory_already", known)}
    facts = list(_steps(memory, ours))
    is_own = _HARDLY_ANYTHING not in facts and not _is_mostly_of_others(memory)
    if is_own and action is None:
        facts.append(_LESS)
        said += [_shown(already.values())] if already else []
    facts += [f"already: {kind}" for kind in already]
    steps = sentences(_ROWS, facts)
    if is_own and action is not None:
        steps.append(action)
    return functools.reduce(both, [*said, _in_order([_as_part(step) for step in steps])])


def _shown(clauses: Collection[Translated]) -> Translated:
    return Translated(
        f"The run shows that {', and that '.join(each.en for each in clauses)}.",
        f"由运行可知：{'；'.join(each.zh_cn for each in clauses)}。",
    )


def _in_order(steps: Sequence[Translated]) -> Translated:
    if len(steps) == 1:
        return Translated(f"Try: {steps[0].en}.", f"可尝试：{steps[0].zh_cn}。")
    return Translated(
        "Try in this order what is not done yet: "
        + "; ".join(f"({n}) {s.en}" for n, s in enumerate(steps, 1))
        + ".",
        "请依次尝试尚未采用的办法："
        + "；".join(f"（{n}）{s.zh_cn}" for n, s in enumerate(steps, 1))
        + "。",
    )


def _as_part(sentence: Translated) -> Translated:
    """A sentence as a part of a longer one."""
    english = _CAPITAL.sub(lambda first: first[0].lower(), sentence.en.rstrip("."))
    return Translated(english, sentence.zh_cn.rstrip("。"))


def _own(others: dict[int, Size], allocated: Size) -> Size | None:
    """What this process holds, taken out of the others: in a container it is listed by a number it does not know."""
    fitting = [pid for pid, size in others.items() if size.mib >= allocated.mib]
    return others.pop(min(fitting, key=lambda pid: others[pid].mib)) if fitting else None


def _size(pattern: re.Pattern[str], text: str) -> Size | None:
    found = pattern.search(text)
    return Size(next(group for group in found.groups() if group)) if found else None


def _facts(memory: GpuMemory, ours: Mapping[int, int]) -> Iterator[str]:
    if memory.asked is None:
        yield "no numbers"
    else:
        where = "GPU" if memory.device is None else f"GPU {memory.device}"
        told = f"asked {memory.asked.text} on {where}"
        if memory.free is not None and memory.total is not None:
            told += f", free {memory.free.text} of {memory.total.text}"
        used = memory.unused if memory.unused is not None and memory.unused.mib >= 1 else None
        own = (("held", memory.in_use), ("tensors", memory.allocated), ("unused", used))
        yield told + "".join(f", {name} {size.text}" for name, size in own if size is not None)
    listed = ", ".join(f"{pid} ({size.text})" for pid, size in memory.others.items())
    known = sorted(ours[pid] for pid in memory.others if pid in ours)
    if known:
        yield f"processes {listed} are ranks {', '.join(map(str, known))}"
    elif memory.others:
        small = all(size.mib < _A_CONTEXT for size in memory.others.values())
        several = len(memory.others) > 1 or small
        yield f"processes {listed} may be ranks" if several else f"process {listed} is another"
    elif (rest := _unaccounted(memory)) is not None:
        yield f"about {rest.text} are held elsewhere"


def _unaccounted(memory: GpuMemory) -> Size | None:
    """What neither this process holds nor is free, where the message lists no other process and that is much."""
    if memory.total is None or memory.free is None or memory.others:
        return None
    if memory.held is None:
        return None
    rest = memory.total.mib - memory.free.mib - memory.held
    return (
        Size(f"{rest / 1024:.1f} GiB") if rest > max(_A_CONTEXT, memory.total.mib * _MUCH) else None
    )


def _is_mostly_of_others(memory: GpuMemory) -> bool:
    """Whether another process holds so much more that what this one could save would be small."""
    elsewhere = _unaccounted(memory)
    sizes = [*memory.others.values(), *([elsewhere] if elsewhere else [])]
    held = memory.held
    return held is not None and any(size.mib > _FAR_MORE * held for size in sizes)


def _steps(memory: GpuMemory, ours: Mapping[int, int]) -> Iterator[str]:
    asked, total, free, unused = memory.asked, memory.total, memory.free, memory.unused
    if unused and total and unused.mib < total.mib * _LITTLE:
        unused = None
    held = memory.held
    if _unaccounted(memory):
        yield "step: see whose it is"
    if asked and total and asked.mib > total.mib:
        yield "step: larger than the GPU"
    elif asked and held and total and asked.mib > max(held, total.mib * 0.25):
        yield f"step: one tensor of {asked.text}"
    if asked and unused and unused.mib >= asked.mib:
        yield f"step: its own memory is fragmented ({memory.setting})"
    elif asked and free and free.mib >= asked.mib:
        yield f"step: enough was free ({memory.setting})"
    elif asked and free and unused and unused.mib >= max(asked.mib - free.mib, asked.mib / 2):
        yield f"step: its own memory is fragmented ({memory.setting}), {free.text} were free"
    if memory.others and not (ours.keys() & memory.others.keys()):
        largest = max(memory.others.values(), key=lambda size: size.mib)
        if held is None or largest.mib > held:
            yield "step: another GPU"
    if any(pid in ours for pid in memory.others) or len(memory.others) > 1:
        yield "step: a GPU for each rank"
    if held is not None and total is not None and held < total.mib * 0.1:
        yield _HARDLY_ANYTHING


_ROWS = "gpu_memory_numbers"
_HARDLY_ANYTHING = "step: hardly anything was its own"
_SETTING = "PYTORCH_CUDA_ALLOC_CONF"
_LESS = "step: less of everything"
_MUCH = 0.15
"""Of the whole GPU: less may be what the driver and the libraries of this process take."""
_LITTLE = 0.02
"""Of the whole GPU: what is unused in parts of blocks is never nothing, and defragmenting it gives no relief."""
_FAR_MORE = 2.0
_A_CONTEXT = 1024.0
"""MiB; a CUDA context without tensors takes a few hundred."""
