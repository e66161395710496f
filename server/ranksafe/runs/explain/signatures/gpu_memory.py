"""Out of GPU memory: what was asked, who held what, and what to try in order.

The forms of the message are told in `gpu_memory.json`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ranksafe.localization import Translated
from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.launcher_report import read_launcher

KIND = "cuda-out-of-memory"

_SIZE = r"(?<![\d.])([\d.]+ (?:[KMGT]i?B|bytes?))"
_ASKED = re.compile(rf"[Tt]ried to allocate {_SIZE}")
_DEVICE = re.compile(r"\([GNX]PU (\d+);|GPU (\d+) has a total capaci?ty")
_TOTAL = re.compile(rf"{_SIZE} total capacity|total capaci?ty of {_SIZE}")
_FREE = re.compile(rf"{_SIZE} free[;,)]|of which {_SIZE} is free")
_ALLOCATED = re.compile(rf"{_SIZE} already allocated|{_SIZE} is allocated by PyTorch")
_RESERVED = re.compile(rf"{_SIZE} (?:reserved in total by PyTorch|cached)")
_UNUSED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_IN_USE = re.compile(rf"this process has {_SIZE} memory in use")
_OTHER = re.compile(rf"\bProcess (\d+) has {_SIZE} memory in use")
_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024.0}


@dataclass(frozen=True, slots=True)
class Size:
    """An amount of memory, as it was written."""

    text: str

    @property
    def mib(self) -> float:
        """In MiB."""
        number, unit = self.text.split(" ", 1)
        return float(number.rstrip(".")) * _UNITS.get(unit[0], 1 / 1024**2)


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
    others: dict[int, Size] = field(default_factory=dict)
    """Held by other processes, by their ids."""


def read_gpu_memory(text: str) -> GpuMemory:
    """The numbers of a message; where ranks wrote several, of the first."""
    device = _DEVICE.search(text)
    allocated, reserved, unused = (_size(each, text) for each in (_ALLOCATED, _RESERVED, _UNUSED))
    if unused is None and allocated is not None and reserved is not None:
        unused = Size(f"{max(0.0, reserved.mib - allocated.mib):.0f} MiB")
    in_use, others = _size(_IN_USE, text), {int(pid): Size(n) for pid, n in _OTHER.findall(text)}
    if in_use is None and allocated is not None:
        in_use = _own(others, allocated)
    return GpuMemory(
        asked=_size(_ASKED, text),
        device=int(device[1] or device[2]) if device else None,
        total=_size(_TOTAL, text),
        free=_size(_FREE, text),
        allocated=allocated,
        unused=unused,
        in_use=in_use,
        others=others,
    )


def explain_gpu_memory(text: str, evidence: Evidence | None, action: Translated) -> Translated:
    """What the numbers mean, and what to try in order.

    ``evidence``: tells the run's own processes; ``action``: how to need less of what the memory was for.
    """
    memory = read_gpu_memory(text)
    parts = [_facts(memory)]
    ours = {} if evidence is None else _ranks_of_pids(evidence)
    if memory.others:
        parts.append(_others(memory, ours))
    elif (rest := _unaccounted(memory)) is not None:
        parts.append(_HELD_ELSEWHERE.filled(rest=rest.text))
    less = Translated(action.en[0].lower() + action.en[1:].rstrip("."), action.zh_cn.rstrip("。"))
    parts.append(_advice(memory, ours, less))
    return Translated(" ".join(part.en for part in parts), "".join(part.zh_cn for part in parts))


def _ranks_of_pids(evidence: Evidence) -> dict[int, int]:
    ours = {pid: rank for rank, pid in read_launcher(evidence.launcher).pids.items()}
    return ours | {rank.pid: rank.rank for rank in evidence.ranks.values() if rank.pid is not None}


def _own(others: dict[int, Size], allocated: Size) -> Size | None:
    """What this process holds, taken out of the others: in a container it is listed by a number it does not know."""
    fitting = [pid for pid, size in others.items() if size.mib >= allocated.mib]
    return others.pop(min(fitting, key=lambda pid: others[pid].mib)) if fitting else None


def _size(pattern: re.Pattern[str], text: str) -> Size | None:
    found = pattern.search(text)
    return Size(next(group for group in found.groups() if group)) if found else None


def _facts(memory: GpuMemory) -> Translated:
    if memory.asked is None:
        return _NO_NUMBERS
    where = f"GPU {memory.device}" if memory.device is not None else "GPU"
    facts = _ASKED_FOR.filled(where=where, asked=memory.asked.text)
    details: list[Translated] = []
    if memory.free is not None and memory.total is not None:
        details.append(_WAS_FREE.filled(free=memory.free.text, total=memory.total.text))
    if memory.in_use is not None:
        details.append(_PROCESS_HELD.filled(size=memory.in_use.text))
    if memory.allocated is not None:
        details.append(_TENSORS_HELD.filled(size=memory.allocated.text))
    if memory.unused is not None and memory.unused.mib >= 1:
        details.append(_UNUSED_HELD.filled(size=memory.unused.text))
    if not details:
        return Translated(facts.en + ".", facts.zh_cn + "。")
    return Translated(
        f"{facts.en}: {', '.join(each.en for each in details)}.",
        f"{facts.zh_cn}：{'，'.join(each.zh_cn for each in details)}。",
    )


def _others(memory: GpuMemory, ours: dict[int, int]) -> Translated:
    listed = ", ".join(f"{pid} ({size.text})" for pid, size in memory.others.items())
    known = sorted(ours[pid] for pid in memory.others if pid in ours)
    if known:
        return _OWN_RANKS.filled(pids=listed, ranks=", ".join(map(str, known)))
    if len(memory.others) > 1 or all(size.mib < _A_CONTEXT for size in memory.others.values()):
        return _CONTEXTS.filled(pids=listed)
    return _OTHER_PROCESS.filled(pids=listed)


def _unaccounted(memory: GpuMemory) -> Size | None:
    """What neither this process holds nor is free, where the message lists no other process and that is much."""
    if memory.total is None or memory.free is None or memory.others:
        return None
    own = memory.in_use.mib if memory.in_use else None
    if own is None and memory.allocated is not None:
        own = memory.allocated.mib + (memory.unused.mib if memory.unused else 0.0)
    if own is None:
        return None
    rest = memory.total.mib - memory.free.mib - own
    return (
        Size(f"{rest / 1024:.1f} GiB") if rest > max(_A_CONTEXT, memory.total.mib * _MUCH) else None
    )


def _advice(memory: GpuMemory, ours: dict[int, int], less: Translated) -> Translated:
    steps: list[Translated] = [_SET_DEVICE_OR_ANOTHER] if _unaccounted(memory) else []
    asked, total, unused = memory.asked, memory.total, memory.unused
    held = memory.in_use or memory.allocated
    if asked and total and asked.mib > total.mib:
        steps.append(_LARGER_THAN_GPU)
    elif asked and held and total and asked.mib > max(held.mib, total.mib * 0.25):
        steps.append(_ONE_TENSOR.filled(asked=asked.text))
    if asked and unused and unused.mib >= asked.mib:
        steps.append(_FRAGMENTED)
    elif asked and memory.free and memory.free.mib >= asked.mib:
        steps.append(_FREE_ENOUGH)
    if memory.others and not (ours.keys() & memory.others.keys()):
        largest = max(memory.others.values(), key=lambda size: size.mib)
        if held is None or largest.mib > held.mib:
            steps.append(_USE_ANOTHER)
    if any(pid in ours for pid in memory.others) or len(memory.others) > 1:
        steps.append(_SET_DEVICE)
    small = held is not None and total is not None and held.mib < total.mib * 0.1
    steps.append(_NOT_THE_MODEL if small else less)
    if len(steps) == 1:
        return Translated(f"Try: {steps[0].en}.", f"可尝试：{steps[0].zh_cn}。")
    return Translated(
        "Try in this order: " + "; ".join(f"({n}) {s.en}" for n, s in enumerate(steps, 1)) + ".",
        "请依次尝试：" + "；".join(f"（{n}）{s.zh_cn}" for n, s in enumerate(steps, 1)) + "。",
    )


_MUCH = 0.15
"""Of the whole GPU: less may be what the driver and the libraries of this process take."""
_A_CONTEXT = 1024.0
"""MiB; a CUDA context without tensors takes a few hundred."""

_NO_NUMBERS = Translated(
    en="Out of GPU memory; this message has no numbers.", zh_cn="GPU 显存不足；此消息没有给出数字。"
)
_ASKED_FOR = Translated(
    en="Out of GPU memory: {asked} were asked for on {where}",
    zh_cn="显存不足：在 {where} 上请求 {asked}",
)
_WAS_FREE = Translated(en="{free} of {total} were free", zh_cn="共 {total}，空闲 {free}")
_PROCESS_HELD = Translated(en="this process held {size}", zh_cn="本进程占用 {size}")
_TENSORS_HELD = Translated(en="its tensors {size}", zh_cn="其中张量 {size}")
_UNUSED_HELD = Translated(
    en="{size} were reserved by PyTorch and unused", zh_cn="PyTorch 已预留但未使用 {size}"
)
_OWN_RANKS = Translated(
    en="The other processes on this GPU, {pids}, are this run's own ranks {ranks}.",
    zh_cn="该 GPU 上的其他进程 {pids} 是本次运行自己的 rank {ranks}。",
)
_CONTEXTS = Translated(
    en="Other processes hold memory on this GPU: {pids}. If they are ranks of this run, they opened a CUDA context on "
    "the wrong GPU.",
    zh_cn="该 GPU 上还有其他进程占用显存：{pids}。如果它们是本次运行的 rank，则它们在错误的 GPU 上创建了 CUDA "
    "上下文。",
)
_OTHER_PROCESS = Translated(
    en="Another process holds memory on this GPU: {pids}.",
    zh_cn="该 GPU 上有另一个进程占用显存：{pids}。",
)
_HELD_ELSEWHERE = Translated(
    en="About {rest} are held by something else: another rank of this run on the same GPU, or another process.",
    zh_cn="约 {rest} 被其他程序占用：本次运行中位于同一 GPU 的其他 rank，或其他进程。",
)
_SET_DEVICE_OR_ANOTHER = Translated(
    en="see whose memory it is (nvidia-smi): give each rank a GPU of its own (torch.cuda.set_device(local_rank) "
    "first, as many visible GPUs as ranks), or take one that nobody else uses",
    zh_cn="查明是谁占用（nvidia-smi）：让每个 rank 使用自己的 GPU（首先调用 torch.cuda.set_device(local_rank)，可见 "
    "GPU 数不少于 rank 数），或换用没有其他进程的 GPU",
)
_LARGER_THAN_GPU = Translated(
    en="this one allocation is larger than the whole GPU: look for a shape or a length in this line that is not what "
    "you mean",
    zh_cn="单次分配就超过整个 GPU：请检查该行中不符合预期的形状或长度",
)
_ONE_TENSOR = Translated(
    en="a single tensor of {asked} is made in this line: make it smaller, or compute it in chunks",
    zh_cn="该行创建了一个 {asked} 的张量：请缩小它，或分块计算",
)
_FRAGMENTED = Translated(
    en="set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: PyTorch's own unused memory would have been enough, but "
    "it "
    "is fragmented",
    zh_cn="设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True：PyTorch 自己未使用的显存本来足够，只是碎片化了",
)
_FREE_ENOUGH = Translated(
    en="more than what was asked for was reported free: the free memory is fragmented, or taken and given back by "
    "another process; look at nvidia-smi while it runs, and set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    zh_cn="报告的空闲显存多于请求量：空闲显存已碎片化，或被其他进程临时占用；请在运行时查看 nvidia-smi，并设置 "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
)
_USE_ANOTHER = Translated(
    en="take a GPU that nobody else uses (nvidia-smi shows whose process it is)",
    zh_cn="换用没有其他进程的 GPU（nvidia-smi 会显示是谁的进程）",
)
_SET_DEVICE = Translated(
    en="call torch.cuda.set_device(local_rank) before anything else touches CUDA, or create the Accelerator first, so "
    "that each rank stays on its own GPU",
    zh_cn="在任何 CUDA 操作之前调用 torch.cuda.set_device(local_rank)，或先创建 Accelerator，使每个 rank 只用自己的 "
    "GPU",
)
_NOT_THE_MODEL = Translated(
    en="find who holds the rest: this process had hardly anything, so its model and batch are not the cause",
    zh_cn="查明其余显存被谁占用：本进程几乎没有占用，因此原因不是模型或批大小",
)
