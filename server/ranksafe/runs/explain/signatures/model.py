"""Model, wrapper and Trainer signatures."""

from __future__ import annotations

import re

from ranksafe.localization import Translated
from ranksafe.runs.explain.signatures.signature import Signature, signature

_FSDP = r"/torch/distributed/(?:fsdp|_composable)/"
_NAMED = re.compile(
    r"Parameters which did not receive grad for rank (?P<rank>\d+): (?P<names>[^\n]+)"
)
_MOST_NAMES = 6
_UNUSED = Translated(
    "On rank {rank} {names} had no part in the loss of the step before, so DistributedDataParallel waits for gradients "
    "that never come. Remove or freeze what is unused; find_unused_parameters=True (accelerate: "
    "DistributedDataParallelKwargs) also works, but costs time and hides mistakes.",
    "在 rank {rank} 上，{names} 没有参与上一步的损失计算，DistributedDataParallel 会一直等待它们的梯度。"
    "请删除或冻结未使用的参数；find_unused_parameters=True（accelerate：DistributedDataParallelKwargs）也可行，"
    "但会变慢并掩盖错误。",
)
_MORE = Translated("{names} and {count} more parameters", "{names} 以及另外 {count} 个参数")


def _explain_unused(text: str) -> Translated:
    """By name; of very many the first."""
    found = _NAMED.search(text)
    assert found is not None
    names = found["names"].split(", ")
    told: object = ", ".join(names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        told = _MORE.filled(names=told, count=len(names) - _MOST_NAMES)
    return _UNUSED.filled(rank=found["rank"], names=told)


SIGNATURES: tuple[Signature, ...] = (
    signature(
        "mixed-dtypes-in-fsdp",
        # torch 2.13.0: torch/distributed/fsdp/_flat_param.py.
        r"Must flatten tensors with uniform dtype but got (?P<one>torch\.\w+) and (?P<two>torch\.\w+)",
        en="FSDP puts the parameters of one wrapped module into one flat tensor, and these have two types ({one} and "
        "{two}), "
        "often a half-precision base model with float32 adapters. Give them one type before wrapping, or wrap them "
        "apart.",
        zh="FSDP 会把一个被包装模块的参数放进同一个扁平张量，而这些参数有两种类型（{one} 与 {two}），"
        "常见于半精度基础模型加 "
        "float32 适配器。请在包装前统一类型，或分开包装。",
    ),
    signature(
        "mixed-dtypes-in-fsdp",
        # The words of torch 2.0 and of torch 2.13.0 (python_variable.cpp). Seen in pytorch/pytorch#93288 with
        # use_orig_params=True and torch.compile.
        r"assigned grad has data of a different type|attempting to assign a gradient with dtype '(?P<one>[^']+)' to a "
        r"tensor with (?:grad_)?dtype '(?P<two>[^']+)'|assign a gradient to a tensor that has data of a different type",
        frames=_FSDP,
        en="In the backward pass FSDP gave a parameter a gradient of another type than its own[[ ({one} and {two})]]: "
        "seen with mixed precision together with use_orig_params=True, which not every version of torch can do. Give "
        "model and gradients one type, leave use_orig_params (and torch.compile) off, or use a newer torch.",
        zh="在反向传播中，FSDP 给参数赋了与其类型不同的梯度[[（{one} 与 {two}）]]：见于混合精度与 use_orig_params=True "
        "同时使用，并非所有 torch 版本都支持。请让模型与梯度使用同一类型，关闭 use_orig_params（以及 torch.compile），"
        "或使用更新的 torch。",
    ),
    signature(
        "fsdp-gradient-size",
        r"assigned grad has data of a different size|attempting to assign a gradient of size '(?P<one>[^']+)' to a "
        r"tensor of size '(?P<two>[^']+)'",
        frames=_FSDP,
        en="In the backward pass FSDP gave a parameter a gradient of another size than its own[[ ({one} and {two})]]: "
        "seen with use_orig_params=True under torch.compile and under no_sync. Leave one of them off, or use a newer "
        "torch.",
        zh="在反向传播中，FSDP 给参数赋了与其大小不同的梯度[[（{one} 与 {two}）]]：见于 use_orig_params=True 与 "
        "torch.compile 或 no_sync 同时使用。请关闭其中之一，或使用更新的 torch。",
    ),
    signature(
        "get-batch-samples-signature",
        r"get_batch_samples\(\) (?:takes|missing|got an unexpected keyword)",
        code="RS503",
        en="get_batch_samples is overridden with the signature of another transformers version. Take "
        "(epoch_iterator, num_batches, device) and return (batch_samples, num_items_in_batch).",
        zh="重写的 get_batch_samples 使用了其他 transformers 版本的签名。应接收 (epoch_iterator, num_batches, "
        "device) 并返回 (batch_samples, num_items_in_batch)。",
    ),
    signature(
        "compute-loss-signature",
        r"compute_loss\(\) got an unexpected keyword argument '(?P<name>num_items_in_batch)'",
        code="RS504",
        en="The Trainer passes num_items_in_batch to compute_loss since transformers 4.46, and this override "
        "does not take it. Add the parameter num_items_in_batch=None.",
        zh="自 transformers 4.46 起，Trainer 会把 num_items_in_batch 传给 compute_loss，而此重写没有该参数。"
        "请添加参数 num_items_in_batch=None。",
    ),
    signature(
        "unused-parameters",
        # torch with TORCH_DISTRIBUTED_DEBUG; in runs of ours the agent adds the line.
        _NAMED.pattern,
        elaborate=_explain_unused,
        en=_UNUSED.en,
        zh=_UNUSED.zh_cn,
    ),
    signature(
        "unused-parameters",
        r"Expected to have finished reduction in the prior iteration"
        r"(?:[\s\S]*?Parameter indices which did not receive grad for rank (?P<rank>\d+): (?P<indices>[\d ]+))?",
        en="Some parameters had no part in the loss of the step before, so DistributedDataParallel waits for gradients "
        "that never come[[ (rank {rank}, parameter indices: {indices})]]. Remove or freeze what is unused; "
        "find_unused_parameters=True (accelerate: DistributedDataParallelKwargs) also works, but costs time and hides "
        "mistakes. `ranksafe run` and TORCH_DISTRIBUTED_DEBUG=INFO tell the names.",
        zh="部分参数没有参与上一步的损失计算，DistributedDataParallel 会一直等待它们的梯度[[（rank {rank}，参数序号："
        "{indices}）]]。"
        "请删除或冻结未使用的参数；find_unused_parameters=True（accelerate：DistributedDataParallelKwargs）也可行，"
        "但会变慢并掩盖错误。"
        "`ranksafe run` 和 TORCH_DISTRIBUTED_DEBUG=INFO 会给出参数名。",
    ),
    signature(
        "unused-parameters",
        r"Parameter indices which did not receive grad for rank (?P<rank>\d+): (?P<indices>[\d ]+)",
        en="On rank {rank} these parameters had no part in the loss: {indices}. Remove or freeze what is unused; "
        "find_unused_parameters=True also works, but costs time and hides mistakes. `ranksafe run` and "
        "TORCH_DISTRIBUTED_DEBUG=INFO tell their names.",
        zh="在 rank {rank} 上这些参数没有参与损失计算：{indices}。请删除或冻结未使用的参数；"
        "find_unused_parameters=True "
        "也可行，但会变慢并掩盖错误。`ranksafe run` 和 TORCH_DISTRIBUTED_DEBUG=INFO 会给出它们的名称。",
    ),
    signature(
        "parameter-ready-twice",
        r"Expected to mark a variable ready only once(?:[\s\S]*?with name (?P<name>\S+) has been marked)?",
        name="?",
        en="A parameter (name: {name}) got its gradient twice in one backward pass. With gradient checkpointing use "
        'gradient_checkpointing_kwargs={{"use_reentrant": False}}; do not run the same wrapped module twice '
        "per step.",
        zh="参数（名称：{name}）在一次反向传播中得到了两次梯度。使用梯度检查点时请设置 "
        'gradient_checkpointing_kwargs={{"use_reentrant": False}}；不要在一步中两次运行同一个包装后的模块。',
    ),
    signature(
        "models-differ-between-ranks",
        r"params\[\d+\] in this process with sizes .* appears not to match sizes of the same param in process 0"
        # torch 1.5 to 1.10.
        r"|replicas\[0\]\[\d+\] in this process with (?:sizes|strides)"
        r"|Model replicas must have an equal number of param",
        en="This rank built a model with other shapes than rank 0. Build it from the same configuration and "
        "data on every rank (a vocabulary or a random choice made per rank is the usual cause).",
        zh="该 rank 构建的模型形状与 rank 0 不同。请在每个 rank 上用相同的配置和数据构建模型（常见原因是每个 "
        "rank 各自生成的词表或随机选择）。",
    ),
    signature(
        "models-differ-between-ranks",
        # torch 2.13.0, torch/csrc/distributed/c10d/reducer.cpp.
        r"DDP expects same model across all ranks, but Rank (?P<one>\d+) has (?P<some>\d+) params, while rank "
        r"(?P<two>\d+) has inconsistent (?P<other>\d+) params",
        en="The ranks did not build the same model: rank {one} has {some} parameters, rank {two} has {other}. Build "
        "it "
        "from the same configuration on every rank; a rank that is somewhere else in the code (0 parameters) is told "
        "by its own lines.",
        zh="各 rank 构建的模型不同：rank {one} 有 {some} 个参数，rank {two} 有 {other} 个。请在每个 rank "
        "上用相同的配置构建；"
        "若某个 rank 处于代码的其他位置（0 个参数），请查看它自己的输出。",
    ),
    signature(
        "attribute-of-wrapped-model",
        r"'(?P<wrapper>DistributedDataParallel|DataParallel|FullyShardedDataParallel)' object has no attribute "
        r"'(?P<name>\w+)'",
        en="{wrapper} hides the model's own attributes: {name} belongs to the model inside. Use "
        "accelerator.unwrap_model(model).{name} or model.module.{name}.",
        zh="{wrapper} 会隐藏模型自身的属性：{name} 属于内部的模型。请使用 "
        "accelerator.unwrap_model(model).{name} 或 model.module.{name}。",
    ),
    signature(
        "wrapper-prefix-in-state-dict",
        r'Unexpected key\(s\) in state_dict: "module\.',
        en='The checkpoint was saved from the wrapped model, so its keys begin with "module.". Save '
        "model.module.state_dict() (or accelerator.unwrap_model), or strip the prefix when loading.",
        zh="该检查点保存自包装后的模型，因此键以“module.”开头。请保存 model.module.state_dict()"
        "（或 accelerator.unwrap_model），或在加载时去掉前缀。",
    ),
    signature(
        "nothing-to-train-in-ddp",
        r"DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient",
        en="A frozen model needs no DistributedDataParallel: leave it unwrapped, or use "
        "accelerator.prepare_model(model, evaluation_mode=True).",
        zh="冻结的模型不需要 DistributedDataParallel：请不要包装，或使用 "
        "accelerator.prepare_model(model, evaluation_mode=True)。",
    ),
    signature(
        "batch-not-divisible",
        r"IndivisibleError|Batch size \d+ must be divisible by the number of devices",
        code="RS301",
        en="The batch cannot be split evenly over the devices. Use a batch size that is a multiple of the "
        "number of devices.",
        zh="批次无法均匀分配到各设备。请使用设备数整数倍的批大小。",
    ),
    signature(
        "batch-not-divisible",
        r"global size of its dimension 0 should be divisible by (?P<devices>\d+), but it is equal to (?P<size>\d+)",
        code="RS301",
        en="A batch of {size} cannot be sharded over {devices} devices. Use a multiple of {devices}.",
        zh="大小为 {size} 的批次无法分片到 {devices} 个设备。请使用 {devices} 的整数倍。",
    ),
)
