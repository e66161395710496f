"""The texts of RS505."""

from __future__ import annotations

from ranksafe.localization import Translated

CRASH = Translated(
    "nn.DataParallel splits every tensor it is given, and a 0-d tensor cannot be split: RuntimeError: "
    "chunk expects at least a 1-dimensional tensor; hand over a Python number",
    "nn.DataParallel 会拆分传入的每个张量，而 0 维张量无法拆分：RuntimeError: chunk expects at least a "
    "1-dimensional tensor；请改传 Python 数值",
)
ONE_REPLICA = Translated(
    "nn.DataParallel makes one piece of a tensor of length one and then runs one replica only: {lost} of "
    "{gpus} parts of the batch are dropped without an error; hand over a Python number or one entry per "
    "row",
    "长度为 1 的张量只能拆出一份，nn.DataParallel 因此只运行一个副本：批次 {gpus} 份中的 {lost} 份被静默"
    "丢弃；请改传 Python 数值，或为每一行提供一个元素",
)
UNEVEN = Translated(
    "nn.DataParallel makes one piece of a tensor of length one, while the other arguments give {gpus}: "
    "AssertionError in parallel_apply; hand over a Python number or one entry per row",
    "长度为 1 的张量只能拆出一份，而其他参数拆出 {gpus} 份：nn.DataParallel 的 parallel_apply 抛出 "
    "AssertionError；请改传 Python 数值，或为每一行提供一个元素",
)
MISSING = Translated(
    "nn.DataParallel makes one piece of a tensor of length one: the first replica gets it, the other "
    "{lost} run without the {group} arguments; hand over a Python number or one entry per row",
    "长度为 1 的张量只能拆出一份：nn.DataParallel 只把它交给第一个副本，其余 {lost} 个副本运行时没有"
    "{group}参数；请改传 Python 数值，或为每一行提供一个元素",
)
KEYWORD = Translated("keyword", "关键字")
POSITIONAL = Translated("positional", "位置")
WRAPPED = Translated(
    "the model is wrapped in nn.DataParallel here", "模型在此处被 nn.DataParallel 包装"
)
COLLATED = Translated("every batch holds this tensor", "每个批次都包含这个张量")
