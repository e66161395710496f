"""What optimizers, schedulers, gradient scalers and gradient checkpointing refuse.

The words are those of torch 2.13.0: ``torch/optim``, ``torch/amp/grad_scaler.py``, ``torch/utils/checkpoint.py``.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, ordinary, signature

_OPTIMIZER = "optimizer-parameters"
_SCHEDULER = "learning-rate-schedule"
_SCALER = "mixed-precision"

SIGNATURES: tuple[Signature, ...] = (
    ordinary(
        _OPTIMIZER,
        r"optimizer got an empty parameter list",
        en="The optimizer was given no parameter: everything is frozen or filtered out, the model keeps its layers "
        "in a plain list or dict (use nn.ModuleList, nn.ModuleDict), or a generator of parameters was used up before.",
        zh="优化器没有得到任何参数：全部被冻结或过滤、模型把层放在普通 list 或 dict 中（请用 nn.ModuleList、"
        "nn.ModuleDict），或参数生成器此前已被耗尽。",
    ),
    ordinary(
        _OPTIMIZER,
        r"some parameters appear in more than one parameter group",
        en="A parameter is in two groups of the optimizer: tied weights, or filters by name that overlap.",
        zh="同一参数出现在优化器的两个参数组中：权重共享，或按名称过滤时有重叠。",
    ),
    ordinary(
        _OPTIMIZER,
        r"can't optimize a non-leaf Tensor",
        en="A tensor that is to be trained is the result of a computation (.to(device) after requires_grad, a slice, "
        "a product): make the nn.Parameter last, on its device, and give the optimizer that.",
        zh="要训练的张量是某次计算的结果（requires_grad 之后的 .to(device)、切片、乘积）：请最后在目标设备上创建 "
        "nn.Parameter，再交给优化器。",
    ),
    ordinary(
        _OPTIMIZER,
        r"params argument given to the optimizer should be an iterable of Tensors or dicts, but got (?P<got>\S+)"
        r"|optimizer can only optimize Tensors, but one of the params is (?P<type>\S+)",
        en="The optimizer needs parameters: model.parameters(), or groups of them[[ (it got {got})]][[ (it got a "
        "{type})]].",
        zh="优化器需要参数：model.parameters() 或参数组[[（得到的是 {got}）]][[（得到的是 {type}）]]。",
    ),
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
    ordinary(
        _SCHEDULER,
        r"param 'initial_lr' is not specified in param_groups\[\d+\] when resuming",
        en="A scheduler made with last_epoch >= 0 continues an earlier one, so the optimizer needs its state first: "
        "load the optimizer's state_dict before the scheduler is made, or make it with last_epoch=-1 and load its "
        "own state_dict.",
        zh="以 last_epoch >= 0 创建的调度器会接续之前的调度器，因此优化器要先恢复状态："
        "请在创建调度器之前加载优化器的 state_dict，或以 last_epoch=-1 创建并加载其 state_dict。",
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
    ordinary(
        _SCALER,
        r"unscale_\(\) has already been called on this optimizer since the last update\(\)",
        en="The gradient scaler's unscale_ was called twice before update: once per optimizer step is right, so with "
        "gradient accumulation only in the step that updates, and not beside a library that clips gradients itself.",
        zh="在 update 之前两次调用了梯度缩放器的 unscale_：每个优化器步只应调用一次；"
        "使用梯度累积时只在更新的那一步调用，且不要与自行裁剪梯度的库同时使用。",
    ),
    ordinary(
        _SCALER,
        r"No inf checks were recorded (?:for this optimizer|prior to update)",
        en="The gradient scaler saw no gradient of this optimizer's parameters: the loss does not depend on them, "
        "backward was not called on the scaled loss, or gradients were cleared before the step.",
        zh="梯度缩放器没有见到该优化器参数的任何梯度：损失与这些参数无关、没有对缩放后的损失调用 backward，或在 step "
        "之前清空了梯度。",
    ),
    ordinary(
        _SCALER,
        r"torch\.nn\.functional\.binary_cross_entropy and torch\.nn\.BCELoss are unsafe to autocast",
        en="Under autocast BCELoss is refused: drop the sigmoid before it and use BCEWithLogitsLoss, or compute the "
        "loss in float32 outside of autocast.",
        zh="在 autocast 下不允许使用 BCELoss：请去掉其前面的 sigmoid 并改用 BCEWithLogitsLoss，或在 autocast 之外以 "
        "float32 计算损失。",
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
    ordinary(
        "no-gradient",
        r"none of output has requires_grad=True, this checkpoint\(\) is not necessary",
        en="A block under gradient checkpointing returns nothing that needs a gradient: with frozen layers and "
        "use_reentrant=True call model.enable_input_require_grads(), or use use_reentrant=False.",
        zh="梯度检查点中的块没有返回任何需要梯度的结果：若层被冻结且 use_reentrant=True，请调用 "
        "model.enable_input_require_grads()，或使用 use_reentrant=False。",
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
    ordinary(
        "modified-in-place",
        r"a (?:view of a )?leaf Variable that requires grad (?:is being|has been) used in an in-place operation",
        en="A parameter is changed in place while gradients are recorded: do it under torch.no_grad(), or on .data, "
        "or compute a new tensor instead.",
        zh="在记录梯度时就地修改了参数：请在 torch.no_grad() 下进行，或修改 .data，或改为计算新的张量。",
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
    ordinary(
        "optimizer-state",
        # torch 1.12 to 2.13, torch/optim/adam.py and its kin.
        r"\AAssertionError: If capturable=False, state_steps should not be CUDA tensors",
        en="The optimizer's step counters were loaded onto the GPU, which the ordinary Adam does not take: load the "
        "optimizer's state with map_location='cpu', or set param_group['capturable'] = True after loading.",
        zh="优化器的步数计数器被加载到了 GPU 上，而普通的 Adam 不接受：请用 map_location='cpu' 加载优化器状态，"
        "或加载之后设置 param_group['capturable'] = True。",
    ),
    ordinary(
        "graph-modified",
        # torch 1.x and 2.x, torch/csrc/autograd/functions/accumulate_grad.cpp.
        r"leaf variable has been moved into the graph interior",
        en="A parameter was changed in place outside of torch.no_grad(): write to it under torch.no_grad() or through "
        ".data.",
        zh="在 torch.no_grad() 之外原地修改了参数：请在 torch.no_grad() 下或通过 .data 写入。",
    ),
    ordinary(
        "kernel-resources",
        # triton 2.1 to 3.5, runtime/errors.py.
        r"\A(?:triton\.runtime\.errors\.)?OutOfResources: out of resource: (?P<what>[\w ]+), Required: (?P<needs>\d+), "
        r"Hardware limit: (?P<limit>\d+)",
        en="A Triton kernel needs {needs} of {what} and this GPU has {limit}: its block sizes or num_stages were tuned "
        "for a larger GPU. Lower them, or use the library's other kernel.",
        zh="某个 Triton kernel 需要 {needs} 的 {what}，而此 GPU 只有 {limit}：其块大小或 num_stages 是为更大的 GPU "
        "调整的。请减小它们，或改用该库的其他 kernel。",
    ),
)
