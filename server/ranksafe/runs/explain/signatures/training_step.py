"""What optimizers, schedulers, gradient scalers and gradient checkpointing refuse.

The words are those of torch 2.13.0: ``torch/optim``, ``torch/amp/grad_scaler.py``, ``torch/utils/checkpoint.py``.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, ordinary, signature

_OPTIMIZER = "optimizer-parameters"
_SCHEDULER = "learning-rate-schedule"
_SCALER = "mixed-precision"

SIGNATURES: tuple[Signature, ...] = (
    signature(
        _SCHEDULER,
        r"Tried to step (?P<step>\d+) times\. The specified number of total steps is (?P<total>\d+)",
        raised_only=True,
        en="The scheduler was made for {total} steps, and this is step {step}: an epoch has more batches than were "
        "counted (the last partial one: use len(loader), or math.ceil), it is stepped per batch instead of per "
        "optimizer step, there are more epochs, the run was resumed, or total_steps was computed for another number of "
        "ranks or for gradient accumulation.",
        zh="学习率调度器为 {total} 步而建，而这已是第 {step} 步：每个 epoch 的批次多于所计算的（最后一个不完整的批次："
        "请用 len(loader) 或 math.ceil）、按批次而不是按优化器步调用、epoch 更多、恢复训练，"
        "或 total_steps 是按不同的 rank 数或梯度累积计算的。",
    ),
    signature(
        _SCHEDULER,
        r"Expected positive integer (?P<name>total_steps|steps_per_epoch|epochs|T_0), but got (?P<got>\S+)",
        raised_only=True,
        en="The scheduler gets {name}={got}: a number of steps that came out as 0 or as no integer, often because "
        "the data was divided by batch size, ranks and accumulation steps (use math.ceil, at least 1).",
        zh="调度器得到 {name}={got}：步数为 0 或不是整数，常见原因是数据量除以批大小、rank "
        "数和累积步数后得到的结果（请用 math.ceil，且至少为 1）。",
    ),
    signature(
        "checkpointing-recomputes-other",
        r"torch\.utils\.checkpoint: (?:Recomputed values for the following tensors have different metadata"
        r"|A different number of tensors was saved during the original forward and recomputation"
        r"|trying to save more tensors during recomputation)",
        raised_only=True,
        en="Gradient checkpointing ran the forward pass of a block again in backward, and it came out different: "
        "something in it depends on state that has changed (a counter, a cache such as use_cache=True, random "
        "numbers outside of torch, train or eval mode, autocast, a type or device that was changed, gathered weights "
        "of sharded training). Make the block depend on its inputs alone, and try use_reentrant=False or True.",
        zh="梯度检查点在反向传播时重新运行了某个块的前向，而结果不同：其中有内容依赖已经改变的状态（计数器、"
        "use_cache=True 之类的缓存、torch 之外的随机数、train 或 eval 模式、autocast、被改变的类型或设备、"
        "分片训练中被收集的权重）。请让该块只依赖其输入，并尝试 use_reentrant=False 或 True。",
    ),
    signature(
        "ddp-create-graph",
        # Run with torch 2.13.0 on two gloo ranks: it fails, and on one process without DDP it passes.
        r"a leaf Variable that requires grad (?:is being|has been) used in an in-place operation",
        frames=r"autograd/graph\.py:_engine_run_backward",
        raised_only=True,
        en="It was raised inside backward. With backward(create_graph=True) DistributedDataParallel cannot average the "
        "gradients, which then belong to a graph themselves; on one process without it the same code passes. Compute "
        "second derivatives with torch.autograd.grad on the inner module, and average them yourself.",
        zh="该错误在 backward 内部抛出。使用 backward(create_graph=True) 时，梯度本身属于计算图，"
        "DistributedDataParallel 无法对其求平均；不使用它的单进程则会通过。"
        "请对内部模块使用 torch.autograd.grad 计算二阶导数，并自行求平均。",
    ),
    signature(
        "gradient-mismatch",
        r"Function (?P<name>\w+) returned an invalid gradient at index \d+ - got (?P<got>.+?) but expected (?:shape "
        r"compatible with |type )?(?P<needs>[^\n]+)",
        raised_only=True,
        en="The backward pass of {name} made a gradient of {got} where {needs} is needed: a tensor was changed "
        "(resized, moved, cast) between forward and backward, or a custom autograd function returns the wrong one.",
        zh="{name} 的反向传播产生了 {got} 的梯度，而需要的是 {needs}：张量在前向与反向之间被改变（大小、设备、类型），"
        "或自定义 autograd 函数返回了错误的梯度。",
    ),
    ordinary(
        "not-finite",
        # fairseq 0.9 to 0.12, optim/dynamic_loss_scaler.py; DeepSpeed 0.3 to 0.18, runtime/fp16/loss_scaler.py.
        r"\A(?:FloatingPointError: Minimum loss scale reached|Exception: Current loss scale already at minimum)",
        plain=False,
        en="In half precision the gradients overflowed step after step, until the loss scale could not be lowered any "
        "more: the loss is NaN or grows without bound. Lower the learning rate or warm it up longer, clip gradients, "
        "look for bad batches, or train in bfloat16, which needs no loss scale.",
        zh="半精度训练中梯度连续溢出，直到损失缩放无法再降低：损失为 NaN 或无限增大。请降低学习率或延长预热、裁剪梯度、"
        "检查异常批次，或使用不需要损失缩放的 bfloat16。",
    ),
    signature(
        "not-finite",
        # Megatron-LM, megatron/core/rerun_state_machine.py and distributed/param_and_grad_buffer.py.
        r"Unexpected result (?:nan|inf)\b|[Ff]ound (?:NaN|Inf|inf) in local (?:grad|forward)",
        raised_only=True,
        en="The numbers broke down on this rank (NaN or infinite), which Megatron checks before it averages gradients: "
        "look at the learning rate and at the data of this step.",
        zh="该 rank 的数值出现 NaN 或无穷，Megatron 在对梯度求平均之前检查到了它：请检查学习率和该步的数据。",
    ),
)
