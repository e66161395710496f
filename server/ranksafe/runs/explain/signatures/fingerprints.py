"""Collectives that torch compared before it ran them (``TORCH_DISTRIBUTED_DEBUG=DETAIL``) and found to differ.

torch 2.13.0's ``ProcessGroupWrapper``, seen with gloo on two ranks: each rank prints its own fingerprint and another
rank's. An extra collective on one rank shows as a difference of sizes too, because the n-th call of each is compared.
Where one of them sends no tensor (a barrier), the other rank's operation is printed wrongly: a barrier as REDUCE, an
all_reduce as GATHER. The simulated NCCL prints the same, with the number of elements for the shape, without devices.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

_ONE = r"Detected mismatch between collectives on ranks\. Rank (?P<one>\d+) is running (?:inconsistent )?collective: "
_TWO = r"[\s\S]*?but Rank (?P<two>\d+) is running (?:inconsistent )?collective: "
_PRINT = r"CollectiveFingerPrint\((?:SequenceNumber=\d+, ?)?OpType="
_MEASURED = "(?:TensorShape|Elements)="
_SIZE = r"(?:\[[^\n]*?\]|\d+)"
_AFTER_TYPE = r"(?:, (?:TensorDeviceTypes|Root|ReduceOp)=|\))"

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "collective-shape-mismatch",
        _ONE
        + _PRINT
        + rf"(?P<op>\w*GATHER\w*), {_MEASURED}(?P<size>{_SIZE}), TensorDtypes="
        + _TWO
        + _PRINT
        + rf"(?P=op), {_MEASURED}(?!(?P=size), TensorDtypes)(?P<other>{_SIZE}), TensorDtypes=",
        en="The sizes differ: in {op}, rank {one} sends a tensor of {size} and rank {two} one of {other}. It needs the "
        "same size on every rank: pad first (accelerator.pad_across_processes), use gather_for_metrics, or gather "
        "objects. If the sizes are right, one rank made a collective more than the other before.",
        zh="大小不同：在 {op} 中，rank {one} 发送的张量为 {size}，rank {two} 为 {other}。它要求所有 rank 大小相同："
        "请先填充（accelerator.pad_across_processes）、使用 gather_for_metrics，或收集对象。若大小本来就正确，"
        "则其中一个 rank 之前多执行了一次集合通信。",
    ),
    signature(
        "collective-shape-mismatch",
        _ONE
        + _PRINT
        + rf"(?P<op>\w+), {_MEASURED}(?P<size>{_SIZE}), TensorDtypes="
        + _TWO
        + _PRINT
        + rf"(?P=op), {_MEASURED}(?!(?P=size), TensorDtypes)(?P<other>{_SIZE}), TensorDtypes=",
        en="The sizes differ: in {op}, rank {one} has a tensor of {size} and rank {two} one of {other}. Look for a "
        "size that follows from a rank's own data (a last, smaller batch, a filter), for models that differ between "
        "ranks, and for a collective that one rank calls more often than the other.",
        zh="大小不同：在 {op} 中，rank {one} 的张量为 {size}，rank {two} 为 {other}。"
        "请检查由该 rank 自己的数据决定的大小（较小的最后一批、过滤）、各 rank 之间不同的模型，"
        "以及某个 rank 多调用的集合通信。",
    ),
    signature(
        "collective-dtype-mismatch",
        _ONE
        + _PRINT
        + rf"(?P<op>\w+), {_MEASURED}[^\n]*?, TensorDtypes=(?P<type>[^\n=]*?){_AFTER_TYPE}"
        + _TWO
        + _PRINT
        + rf"(?P=op), {_MEASURED}[^\n]*?, TensorDtypes=(?!(?P=type){_AFTER_TYPE})(?P<other>[^\n=]*?){_AFTER_TYPE}",
        en="The types differ: in {op}, rank {one} has {type} and rank {two} {other}. Convert to one type on every rank "
        "first.",
        zh="类型不同：在 {op} 中，rank {one} 为 {type}，rank {two} 为 {other}。请先在所有 rank 上转换为同一类型。",
    ),
    signature(
        "collective-device-mismatch",
        _ONE
        + _PRINT
        + r"(?P<op>\w+), [^\n]*?TensorDeviceTypes=[^\n]*?device=(?P<device>\w+)"
        + _TWO
        + _PRINT
        + r"(?P=op), [^\n]*?TensorDeviceTypes=[^\n]*?device=(?!(?P=device)\b)(?P<other>\w+)",
        en="The devices differ: in {op}, rank {one} has a tensor on {device} and rank {two} one on {other}. Move it "
        "to the rank's device first.",
        zh="设备不同：在 {op} 中，rank {one} 的张量在 {device}，rank {two} 的在 {other}。"
        "请先把它移到该 rank 的设备上。",
    ),
    signature(
        "collective-mismatch",
        _ONE
        + _PRINT
        + r"(?P<op>\w+), (?:Tensor|Elements)"
        + _TWO
        + _PRINT
        + r"(?!(?P=op)\b)(?P<other>\w+), (?:Tensor|Elements)",
        en="Ranks do different things: rank {one} is in {op}, rank {two} in {other}. Every rank must call the "
        "same collectives in the same order; look for a branch that depends on the rank or on local data.",
        zh="各 rank 执行的操作不同：rank {one} 在 {op}，rank {two} 在 {other}。所有 rank 必须以相同顺序调用相同的"
        "集合通信；请检查依赖 rank 或本地数据的分支。",
    ),
    signature(
        "collective-mismatch",
        _ONE + r"CollectiveFingerPrint\([^\n]*?OpType=(?P<op>\w+)" + _TWO,
        en="Ranks do different things: rank {one} is in {op}, rank {two} in another collective. Every rank must call "
        "the same collectives in the same order; look for a branch that depends on the rank or on local data.",
        zh="各 rank 执行的操作不同：rank {one} 在 {op}，rank {two} 在另一个集合通信。所有 rank 必须以相同顺序调用相同的"
        "集合通信；请检查依赖 rank 或本地数据的分支。",
    ),
)
