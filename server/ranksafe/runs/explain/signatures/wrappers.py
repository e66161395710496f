"""What DistributedDataParallel, FSDP, device meshes and distributed checkpoints refuse.

The words are those of torch 2.13.0: ``torch/nn/parallel/distributed.py``, ``torch/nn/modules/batchnorm.py``,
``torch/distributed/fsdp``, ``torch/distributed/device_mesh.py``, ``torch/distributed/checkpoint``.
"""

from __future__ import annotations

from functools import partial

from ranksafe.runs.explain.signatures.signature import Signature, ordinary, signature

_of_wrappers = partial(ordinary, plain=False)
_DDP = "ddp-arguments"
_FSDP = "fsdp-arguments"
_MESH = "mesh-size"
_CHECKPOINT = "distributed-checkpoint"

SIGNATURES: tuple[Signature, ...] = (
    _of_wrappers(
        _DDP,
        r"device_ids can only be None or contain a single element",
        en="DistributedDataParallel gets several devices, and takes one per process: device_ids=[local_rank]. "
        "Several GPUs in one process are what nn.DataParallel is for.",
        zh="DistributedDataParallel 得到了多个设备，而每个进程只接受一个：device_ids=[local_rank]。"
        "在一个进程中使用多个 GPU 的是 nn.DataParallel。",
    ),
    _of_wrappers(
        _DDP,
        r"DistributedDataParallel's input module must be on the same type of devices, but input module parameters "
        r"locate in (?P<devices>\{[^}]*\})",
        en="Parts of the model are on different kinds of devices ({devices}): move the whole model to this rank's "
        "GPU before it is wrapped.",
        zh="模型的各部分位于不同类型的设备上（{devices}）：请在包装之前把整个模型移到该 rank 的 GPU。",
    ),
    _of_wrappers(
        _DDP,
        r"Modules with uninitialized parameters can't be used with `(?P<wrapper>\w+)`",
        en="The model has lazy layers whose sizes are not known yet: run one forward pass with a real input before "
        "it is wrapped in {wrapper}, the same one on every rank.",
        zh="模型含有尚不知大小的 lazy 层：请在用 {wrapper} 包装之前用真实输入运行一次前向，每个 rank 相同。",
    ),
    _of_wrappers(
        _DDP,
        r"SyncBatchNorm expected input tensor to be on GPU|SyncBatchNorm layers only work with GPU modules",
        en="SyncBatchNorm works on GPUs alone, and this model or its input is on the CPU: move it to the GPU, or "
        "leave convert_sync_batchnorm out on the CPU.",
        zh="SyncBatchNorm 只能在 GPU 上工作，而该模型或其输入位于 CPU：请移到 GPU，或在 CPU 上不要使用 "
        "convert_sync_batchnorm。",
    ),
    _of_wrappers(
        "unused-parameters",
        # torch 2.13.0, torch/csrc/distributed/c10d/reducer.cpp.
        r"Your training graph has changed in this iteration",
        en="static_graph=True promises DistributedDataParallel that every iteration uses the same parameters, and "
        "this one did not. Leave static_graph out (find_unused_parameters=True finds the unused ones each time), or "
        "make every iteration use the same layers.",
        zh="static_graph=True 向 DistributedDataParallel 保证每次迭代使用相同的参数，而这次不同。请去掉 "
        "static_graph（find_unused_parameters=True 会在每次迭代中查找未使用的参数），或让每次迭代使用相同的层。",
    ),
    _of_wrappers(
        "unused-parameters",
        # lightning 2.6.6, lightning/pytorch/strategies/ddp.py.
        r"It looks like your LightningModule has parameters that were not used in producing the loss",
        en="Some parameters took no part in the loss, so DistributedDataParallel waits for their gradients in vain. "
        "Use all of them in every step, freeze those that are not needed, or pass "
        'strategy="ddp_find_unused_parameters_true".',
        zh="部分参数没有参与损失计算，DistributedDataParallel 因此一直等待其梯度。请在每一步使用全部参数、"
        '冻结不需要的参数，或传入 strategy="ddp_find_unused_parameters_true"。',
    ),
    _of_wrappers(
        _FSDP,
        r"Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`",
        en="FSDP puts frozen and trainable parameters of one wrapped module into one flat tensor, which has to be "
        "all of one kind. Pass use_orig_params=True, or wrap frozen and trainable parts apart.",
        zh="FSDP 会把一个被包装模块中冻结的和可训练的参数放进同一个扁平张量，而它们必须一致。请传入 "
        "use_orig_params=True，或分开包装冻结部分与可训练部分。",
    ),
    _of_wrappers(
        _FSDP,
        r"Inconsistent compute device and `device_id` on rank (?P<rank>\d+): (?P<one>\S+) vs (?P<two>\S+)",
        en="On rank {rank} the model is on {one} and FSDP is told to compute on {two}. Call "
        "torch.cuda.set_device(local_rank) first, and move the model to that GPU or leave it on the CPU.",
        zh="在 rank {rank} 上，模型位于 {one}，而 FSDP 被要求在 {two} 上计算。请先调用 "
        "torch.cuda.set_device(local_rank)，并把模型移到该 GPU 或留在 CPU 上。",
    ),
    _of_wrappers(
        _FSDP,
        r"The module has CPU parameters or buffers when `sync_module_states=True`"
        r"|To support a module with both CPU and GPU params, please pass in device_id argument",
        en="FSDP has to send the weights over the GPUs, and some of them are on the CPU: pass "
        "device_id=torch.cuda.current_device(), after torch.cuda.set_device(local_rank).",
        zh="FSDP 需要通过 GPU 发送权重，而其中一部分位于 CPU：请在 torch.cuda.set_device(local_rank) 之后传入 "
        "device_id=torch.cuda.current_device()。",
    ),
    _of_wrappers(
        _FSDP,
        r"(?:FSDP|fully_shard) doesn't support scalar parameters\. Change (?P<name>\S+) to a 1D tensor",
        en="The parameter {name} has no dimension, and FSDP shards along one: make it a tensor of one element "
        "(torch.ones(1)).",
        zh="参数 {name} 没有维度，而 FSDP 沿某一维分片：请把它改为只有一个元素的张量（torch.ones(1)）。",
    ),
    _of_wrappers(
        _FSDP,
        r"FSDP auto wrapping requires modules to not already have FSDP applied",
        en="A part of the model is wrapped in FSDP already, and an auto_wrap_policy wraps it again: wrap by hand or "
        "by policy, and only once (accelerator.prepare or the Trainer may have done it).",
        zh="模型的一部分已经用 FSDP 包装，而 auto_wrap_policy 又要包装它：请只用手动或策略之一，"
        "且只包装一次（accelerator.prepare 或 Trainer 可能已经包装）。",
    ),
    _of_wrappers(
        _FSDP,
        r"Could not find the transformer layer class(?: called)? '?(?P<name>[\w.]+)'?(?: to wrap)? in the model",
        en="The model has no layer of the class {name} that the wrapping policy names: give the class name of this "
        "model's own block (printing the model shows it).",
        zh="模型中没有包装策略所指定的类 {name}：请给出该模型自己的层类名（打印模型即可看到）。",
    ),
    _of_wrappers(
        "collective-mismatch",
        # torch/distributed/fsdp/_exec_order_utils.py, with TORCH_DISTRIBUTED_DEBUG=INFO or DETAIL.
        r"Forward order differs across ranks: rank (?P<one>\d+) is all-gathering .* while rank (?P<two>\d+) is",
        en="Ranks {one} and {two} go through the model's layers in a different order, so FSDP gathers different "
        "weights: every rank must take the same path through the model.",
        zh="rank {one} 与 rank {two} 以不同的顺序经过模型的各层，FSDP 因此收集不同的权重：每个 rank "
        "必须走同样的路径。",
    ),
    _of_wrappers(
        _MESH,
        r"Mesh should not be bigger than default world size (?P<world>\d+), but found (?P<mesh>\d+) ranks!",
        en="The device mesh names {mesh} ranks, and {world} were started: start as many, or make the mesh's sizes "
        "from the world size.",
        zh="device mesh 包含 {mesh} 个 rank，而只启动了 {world} 个：请启动同样多的进程，或由 world size 计算 mesh "
        "的大小。",
    ),
    _of_wrappers(
        _MESH,
        # accelerate 1.15.0, parallelism_config.py.
        r"ParallelismConfig total_size \((?P<mesh>\d+)\) does not match num_processes \((?P<world>\d+)\)",
        en="The parallel sizes make {mesh} ranks together, and {world} were started: data, shard, tensor and context "
        "parallel sizes have to multiply to the number of processes.",
        zh="各并行大小之积为 {mesh} 个 rank，而启动了 {world} 个：数据、分片、"
        "张量与上下文并行的大小之积必须等于进程数。",
    ),
    _of_wrappers(
        _MESH,
        r"The world size \((?P<world>\d+)\) must be divisible by 'group_size=(?P<size>\d+)'",
        en="{world} ranks cannot be divided into groups of {size}: start a multiple of {size}.",
        zh="{world} 个 rank 无法划分为每组 {size} 个：请启动 {size} 的整数倍个进程。",
    ),
    _of_wrappers(
        "group-rank",
        r"the new group's rank should be within the world_size set by init_process_group"
        r"|the new group's world size should be less or equal to the world size set by init_process_group",
        en="new_group names ranks that do not exist in this run: its ranks are global, from 0 to the world size less "
        "one. More ranks were meant to be started than were.",
        zh="new_group 指定了此次运行中不存在的 rank：其 rank 是全局编号，从 0 到 world size 减一。"
        "本应启动的进程多于实际启动的。",
    ),
    _of_wrappers(
        _CHECKPOINT,
        r"Missing key in checkpoint state_dict: (?P<key>\S+?)\.?$",
        en="The distributed checkpoint has no {key}: it was saved from another model, with other names (module., "
        "_orig_mod., _fsdp_wrapped_module.), or without this part.",
        zh="分布式检查点中没有 {key}：它保存自另一个模型、名称不同（module.、_orig_mod.、_fsdp_wrapped_module.），"
        "或不含该部分。",
    ),
    _of_wrappers(
        _CHECKPOINT,
        r"Size mismatch between saved (?P<saved>.+?) and current: (?P<current>.+?) for (?P<key>\S+)",
        en="{key} was saved with the size {saved} and has {current} now: the model was built from another "
        "configuration.",
        zh="{key} 保存时的大小为 {saved}，现在为 {current}：模型是用不同的配置构建的。",
    ),
    _of_wrappers(
        _CHECKPOINT,
        r"Checkpoint already exists and self\.overwrite=False",
        en="There is a checkpoint in this folder already, and overwriting is off: use a folder per step, or "
        "overwrite=True.",
        zh="该目录中已有检查点，且不允许覆盖：请为每一步使用单独的目录，或设置 overwrite=True。",
    ),
    _of_wrappers(
        "tensors-not-contiguous",
        # torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp.
        r"\A(?:\w+\.)*(?:Runtime|Value|DistBackend)?Error: Tensors must be contiguous",
        en="Collectives send memory as it lies, and this tensor is a view with gaps (a transpose, a slice): pass "
        "tensor.contiguous(), and keep it where the result is to be read.",
        zh="集合通信按内存布局发送数据，而该张量是不连续的视图（转置、切片）：请传入 tensor.contiguous()，"
        "并在需要读取结果处保留它。",
    ),
    signature(
        "shape-mismatch",
        # deepspeed.readthedocs.io, zero3: a partitioned parameter is torch.Size([0]) until it is gathered.
        r"shape '(?P<shape>\[(?:-?\d+, )*0(?:, -?\d+)*\])' is invalid for input of size (?P<size>[1-9]\d*)"
        r"|mat1 and mat2 shapes cannot be multiplied \((?P<one>\d+x\d+ and 0x\d+)\)"
        r"|size mismatch, got input \(\d+\), mat \(\d+x\d+\), vec \(0\)",
        raised_only=True,
        en="A size is 0 here[[: {size} elements do not make {shape}]][[ ({one})]]. Under DeepSpeed ZeRO-3 or FSDP a "
        "weight has the size 0 (or only this rank's share) outside of its own forward, so a size that was read from it "
        "there, such as the vocabulary's, is wrong: take sizes from the configuration, and gather a weight before you "
        "read or resize it (deepspeed.zero.GatheredParameters, FSDP.summon_full_params). Without them look for where "
        "the 0 comes from.",
        zh="此处有一个大小为 0[[：{size} 个元素不能组成 {shape}]][[（{one}）]]。在 DeepSpeed ZeRO-3 或 FSDP 下，权重在"
        "其自身的 forward 之外大小为 0（或只有该 rank 的分片），因此在那里从权重读取的大小（例如词表大小）是错的："
        "请从配置中取得大小，读取或调整权重之前先收集它（deepspeed.zero.GatheredParameters、FSDP.summon_full_params）。"
        "若未使用它们，请查明 0 的来源。",
    ),
    signature(
        "modified-in-place",
        r"one of the variables needed for gradient computation has been modified by an inplace operation",
        raised_only=True,
        en="A tensor that backward still needs was changed in place (+=, relu_, an indexed assignment, an optimizer "
        "step between forward and backward). torch.autograd.set_detect_anomaly(True) shows the forward line. With "
        "DistributedDataParallel a second forward before backward changes buffers too: broadcast_buffers=False.",
        zh="backward 仍需要的张量被就地修改（+=、relu_、索引赋值，或在前向与反向之间执行了优化器步骤）。"
        "torch.autograd.set_detect_anomaly(True) 会显示对应的前向行。使用 DistributedDataParallel 时，"
        "backward 之前的第二次前向也会改变缓冲区：请设置 broadcast_buffers=False。",
    ),
)
