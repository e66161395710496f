"""What GPU memory was asked for, by the functions that asked, and how to need less of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ranksafe.localization import Translated
from ranksafe.runs.model import Frame


def how_to_need_less(frames: Sequence[Frame]) -> Translated:
    """How to need less: a smaller batch helps only where a batch is what the memory was for."""
    called = [f"{frame.filename}:{frame.function}".replace("\\", "/") for frame in frames]
    # Lightning's optimizers call the forward pass from within their step.
    if any(map(_STEPS.search, called[-_INNERMOST:])):
        return _LESS_FOR_STATES
    return next((said for calls, said in _PURPOSES if any(map(calls.search, called))), _LESS)


_LESS_TO_LOAD = Translated(
    en="load the checkpoint into the machine's memory first (torch.load(…, map_location='cpu')): without that every "
    "rank loads it onto the GPU that it was saved from, beside the model",
    zh_cn="先把检查点加载到主机内存（torch.load(…, map_location='cpu')）：否则每个 rank 都会把它加载到保存时所在的 "
    "GPU 上，与模型同时占用显存",
)
_LESS_TO_KEEP = Translated(
    en="move the predictions off the GPU as they come (eval_accumulation_steps), or keep less of each "
    "(preprocess_logits_for_metrics): the evaluation collects those of all batches",
    zh_cn="及时把预测结果移出 GPU（eval_accumulation_steps），或每个批次少保留一些（preprocess_logits_for_metrics）："
    "评估会收集所有批次的预测",
)
_LESS_TO_PLACE = Translated(
    en="a model (or its optimizer) is placed here, not a batch, so a smaller batch does not help: it needs less room "
    "in bfloat16, quantised or with LoRA, when sharded or offloaded (FSDP, ZeRO-3), or a larger GPU; see that nothing "
    "else is on this one",
    zh_cn="此处放置的是模型（或其优化器）而不是批次，减小批大小没有用：请使用 bfloat16、量化或 LoRA，或分片、卸载"
    "（FSDP、ZeRO-3）以减小模型和优化器的占用，或换用更大的 GPU；并确认该 GPU 上没有其他占用",
)
_LESS_FOR_STATES = Translated(
    en="the optimizer steps here, and its states are as large as one or two copies of what is trained: shard them "
    "(ZeRO, FSDP), use an 8-bit optimizer, or train fewer parameters (LoRA); then a smaller batch",
    zh_cn="优化器在此处更新，其状态相当于所训练参数的一到两份：请分片（ZeRO、FSDP）、使用 8 位优化器，或减少训练的"
    "参数（LoRA）；然后再减小批大小",
)
_NOT_FOR_A_BARRIER = Translated(
    en="see in nvidia-smi who filled this GPU before: a barrier itself asks for next to nothing, so a smaller batch "
    "helps only if training ran before; where ranks share a GPU, call torch.cuda.set_device(local_rank) before "
    "init_process_group",
    zh_cn="在 nvidia-smi 中查看该 GPU 此前被谁占满：barrier 本身几乎不需要显存，除非之前已在训练，"
    "否则减小批大小没有用；若多个 rank 共用一个 GPU，"
    "请在 init_process_group 之前调用 torch.cuda.set_device(local_rank)",
)
_LESS = Translated(
    en="a smaller batch per process with gradient accumulation, then gradient checkpointing, then a sharded strategy "
    "(FSDP, ZeRO)",
    zh_cn="减小每个进程的批大小并配合梯度累积，其次使用梯度检查点，再次使用分片策略（FSDP、ZeRO）",
)

_STEPS = re.compile(r"torch/optim/\w+\.py:(?:step|_init_group|_(?:single|multi)_tensor_\w+)$")
_INNERMOST = 4
_PURPOSES = (
    (re.compile(r"torch/distributed/distributed_c10d\.py:barrier$"), _NOT_FOR_A_BARRIER),
    (re.compile(r"torch/serialization\.py:"), _LESS_TO_LOAD),
    (
        re.compile(r"trainer_pt_utils\.py:(?:nested_concat|torch_pad_and_concatenate)"),
        _LESS_TO_KEEP,
    ),
    (
        re.compile(
            r"nn/modules/module\.py:(?:to|cuda|_apply|convert)$|nn/parallel/distributed\.py:__init__"
            r"|deepspeed/runtime/(?:bf16_optimizer|zero/stage\w+|fp16/\w+)\.py:(?:__init__|_setup\w*)"
            r"|deepspeed/runtime/engine\.py:__init__|modeling_utils\.py:from_pretrained"
            r"|fsdp/(?:fully_sharded_data_parallel|_init_utils|_fully_shard/\w+)\.py:(?:__init__|_init\w*)"
        ),
        _LESS_TO_PLACE,
    ),
)
"""What the memory was for, by the functions that asked for it (torch 1.x to 2.13, DeepSpeed 0.5 to 0.18, transformers
4 and 5), and what helps then."""
