"""nn.DataParallel: the Trainer's implicit one and the explicit one."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

_SCATTER = (
    r"nn/parallel/(data_parallel|scatter_gather|comm|_functions)\.py|torch/_utils\.py|_scatter"
)
_ZERO_DIM = r"chunk expects at least a 1-dimensional tensor"

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "scalar-scattered-by-data-parallel",
        _ZERO_DIM,
        user_frame=r"\Acompute_loss:",
        code="RS501",
        en="compute_loss hands a tensor without dimensions (num_items_in_batch) to a model wrapped in "
        "nn.DataParallel, which tries to split every tensor over the GPUs. Start one process per GPU "
        "(accelerate launch), or do not pass it on to the model.",
        zh="compute_loss 把没有维度的张量（num_items_in_batch）传给了 nn.DataParallel 包装的模型，而 "
        "DataParallel 会试图把每个张量拆分到各 GPU。请为每个 GPU 启动一个进程（accelerate launch），"
        "或不要把它传给模型。",
    ),
    signature(
        "trainer-implicit-data-parallel",
        _ZERO_DIM,
        frames=r"transformers/trainer\.py:",
        code="RS101",
        en="One process saw several GPUs, so the Trainer wrapped the model in nn.DataParallel, and this "
        "version of transformers hands it num_items_in_batch as a tensor without dimensions, which cannot "
        "be split. Start one process per GPU (accelerate launch), or show the process a single GPU.",
        zh="一个进程看到了多个 GPU，Trainer 因此用 nn.DataParallel 包装了模型，而此版本的 transformers "
        "把没有维度的张量 num_items_in_batch 交给它，无法拆分。请为每个 GPU 启动一个进程"
        "（accelerate launch），或只让进程看到一个 GPU。",
    ),
    signature(
        "scalar-scattered-by-data-parallel",
        _ZERO_DIM,
        frames=_SCATTER,
        code="RS505",
        en="nn.DataParallel splits every tensor argument along its first dimension; a tensor without "
        "dimensions has none. Pass a plain number, or a tensor with one entry per sample.",
        zh="nn.DataParallel 会沿第一个维度拆分每个张量参数；没有维度的张量无法拆分。请传普通数字，"
        "或传每个样本一个元素的张量。",
    ),
    signature(
        "scalar-scattered",
        _ZERO_DIM,
        en="A tensor without dimensions was to be split, as nn.DataParallel does with every tensor argument. Pass a "
        "plain number, or start one process per GPU (accelerate launch).",
        zh="试图拆分一个没有维度的张量，nn.DataParallel 会对每个张量参数这样做。请传普通数字，"
        "或为每个 GPU 启动一个进程（accelerate launch）。",
    ),
    signature(
        "trainer-implicit-data-parallel",
        r"size of tensor a \((?P<a>\d+)\) must match the size of tensor b \((?P<b>\d+)\) at non-singleton "
        r"dimension 0",
        frames=r"sft_trainer\.py:compute_loss",
        code="RS101",
        en="The Trainer wrapped the model in nn.DataParallel, and because num_items_in_batch has a single "
        "entry only one replica ran, on {a} of {b} samples; TRL compares its output with the labels of the "
        "whole batch. Without TRL the rest of the batch is dropped silently. Start one process per GPU "
        "(accelerate launch).",
        zh="Trainer 用 nn.DataParallel 包装了模型；由于 num_items_in_batch 只有一个元素，只有一个副本运行，"
        "只处理了 {b} 个样本中的 {a} 个，而 TRL 用整个批次的标签与其输出比较。不用 TRL 时，批次的其余部分会被"
        "静默丢弃。请为每个 GPU 启动一个进程（accelerate launch）。",
    ),
    signature(
        "metric-of-one-replica",
        r"size of tensor a \((?P<a>\d+)\) must match the size of tensor b \((?P<b>\d+)\) at non-singleton "
        r"dimension 0",
        user_frame=r"\Acompute_loss:",
        code="RS506",
        en="Inside compute_loss the model's output covers {a} samples and the labels {b}: under "
        "nn.DataParallel they need not have the same length. Compute the metric from outputs and labels of "
        "the same replica, or start one process per GPU.",
        zh="在 compute_loss 中，模型输出对应 {a} 个样本，而标签有 {b} 个：在 nn.DataParallel 下二者长度不一定相同。"
        "请用同一副本的输出和标签计算指标，或为每个 GPU 启动一个进程。",
    ),
    signature(
        "library-refuses-data-parallel",
        r"does not support .?`?nn\.DataParallel",
        code="RS101",
        en="One process saw several GPUs, so the Trainer would use nn.DataParallel, which this library "
        "refuses. Start one process per GPU (accelerate launch), or show the process a single GPU.",
        zh="一个进程看到了多个 GPU，Trainer 会使用 nn.DataParallel，而该库拒绝这样做。请为每个 GPU 启动一个"
        "进程（accelerate launch），或只让进程看到一个 GPU。",
    ),
    signature(
        "loss-not-a-scalar",
        r"cannot be converted to Scalar|only one element tensors can be converted",
        user_frame=r"\Acompute_loss:",
        code="RS502",
        en="num_items_in_batch has one entry per replica here, so .item() fails. Do not reduce it in "
        "compute_loss; start one process per GPU instead.",
        zh="此处 num_items_in_batch 每个副本有一个元素，因此 .item() 会失败。不要在 compute_loss 中取标量；"
        "请改为每个 GPU 启动一个进程。",
    ),
    signature(
        "parameters-missing-in-replica",
        r"StopIteration",
        frames=r"parallel_apply\.py|nn/parallel/|forward",
        user_frame=r"next\(\s*(?:iter\()?\w+(?:\.\w+)*\.parameters\(",
        code="RS514",
        en="A replica made by nn.DataParallel has no parameters of its own, so next(self.parameters()) ends "
        "the iteration. Take device and dtype from an input or a buffer.",
        zh="nn.DataParallel 创建的副本没有自己的参数，因此 next(self.parameters()) 会抛出 StopIteration。"
        "请从输入或 buffer 获取 device 和 dtype。",
    ),
    signature(
        "parameters-missing-in-replica",
        r"Caught StopIteration in replica (?P<replica>\d+)",
        code="RS514",
        en="A replica made by nn.DataParallel has no parameters of its own, so next(self.parameters()) in "
        "forward ends the iteration. Take device and dtype from an input or a buffer.",
        zh="nn.DataParallel 创建的副本没有自己的参数，因此 forward 中的 next(self.parameters()) 会抛出 "
        "StopIteration。请从输入或 buffer 获取 device 和 dtype。",
    ),
    signature(
        "batch-norm-single-sample",
        r"Caught ValueError in replica (?P<replica>\d+)[\s\S]*Expected more than 1 value per channel",
        code="RS302",
        en="nn.DataParallel gave replica {replica} a chunk of one sample, and BatchNorm cannot train on one "
        "value per channel. Choose a batch size whose every chunk has at least two samples, and drop_last=True.",
        zh="nn.DataParallel 分给副本 {replica} 的数据块只有一个样本，而 BatchNorm 训练时每个通道不能只有一个值。"
        "请选择能让每个数据块至少有两个样本的批大小，并设置 drop_last=True。",
    ),
    signature(
        "batch-norm-single-sample",
        r"Expected more than 1 value per channel when training",
        code="RS303",
        en="BatchNorm got a batch with one sample on this rank, usually the last, partial batch. Use "
        "drop_last=True, or a batch size of at least two per process.",
        zh="该 rank 上的 BatchNorm 收到了只有一个样本的批次，通常是最后一个不完整的批次。请设置 "
        "drop_last=True，或让每个进程的批大小至少为 2。",
    ),
    signature(
        "data-parallel-gather",
        r"Gather got an input of invalid size"
        r"|Was asked to gather along dimension 0, but all input tensors were scalars",
        en="nn.DataParallel joins the replicas' outputs along the first dimension, which these outputs do not "
        "share. Return tensors with one entry per sample, or start one process per GPU.",
        zh="nn.DataParallel 沿第一个维度拼接各副本的输出，而这些输出的形状不一致。请返回每个样本一个元素的"
        "张量，或为每个 GPU 启动一个进程。",
    ),
    signature(
        "data-parallel-wrong-device",
        r"module must have its parameters and buffers on device (?P<wanted>\S+) "
        r".*?found one of them on device: (?P<found>\S+)",
        code="RS102",
        en="nn.DataParallel needs the whole model on {wanted}, but part of it is on {found} (a device_map, or "
        "a .to() with another index). Start one process per GPU, or place the model on {wanted}.",
        zh="nn.DataParallel 要求整个模型位于 {wanted}，但其中一部分位于 {found}（device_map 或其他序号的 .to()）。"
        "请为每个 GPU 启动一个进程，或把模型放到 {wanted}。",
    ),
    signature(
        "backward-without-forward",
        # torch 1.8 to 2.13, torch/csrc/distributed/c10d/reducer.cpp: prepare_for_backward was not called.
        r"expect_autograd_hooks_ INTERNAL ASSERT FAILED",
        raised_only=True,
        en="A backward pass came to DistributedDataParallel's hooks, and no forward pass of the wrapped model had "
        "prepared them: the forward called model.module (or an attribute of it) instead of the wrapped model, or it "
        "ran under no_sync() or torch.no_grad() and the backward did not. Call the wrapped model, and put forward and "
        "backward of one step under the same no_sync().",
        zh="反向传播到达 DistributedDataParallel 的钩子时，没有经过包装模型的前向传播为其做准备：前向调用的是 "
        "model.module（或其属性）而不是包装后的模型，或前向在 no_sync() 或 torch.no_grad() 下运行而反向不在。"
        "请调用包装后的模型，并把同一步的前向和反向放在同一个 no_sync() 中。",
    ),
    signature(
        "ddp-device",
        # torch 1.x to 2.13, torch/nn/parallel/distributed.py.
        r"DistributedDataParallel(?:'s|) device_ids and output_device arguments only work with[^\n]*?but got "
        r"device_ids (?P<ids>\[[^\]]*\])[^\n]*?module parameters (?P<where>\{[^\n]*?\})\.?\s*$",
        en="DistributedDataParallel is told to use GPU {ids}, but the model's parameters are on {where}. Move the "
        "model to this rank's GPU before wrapping it (model.to(local_rank)), or pass no device_ids where it is on the "
        "CPU or spread over several devices.",
        zh="DistributedDataParallel 被要求使用 GPU {ids}，但模型参数位于 {where}。请在包装之前把模型移到该 rank 的 GPU"
        "（model.to(local_rank)）；若模型位于 CPU 或分布在多个设备上，则不要传入 device_ids。",
    ),
    signature(
        "ddp-device",
        # torch 1.5 to 1.13, torch/csrc/distributed/c10d/reducer.cpp.
        r"grad\.device\(\) == bucket_view\.device\(\)",
        en="A gradient came on another device than DistributedDataParallel's buffer for it: the model was moved or "
        "its parameters were replaced after it was wrapped, or this rank computes on another rank's GPU. Call "
        "torch.cuda.set_device(local_rank) and move the model before wrapping it.",
        zh="梯度所在设备与 DistributedDataParallel 为其准备的缓冲区不同：模型在包装之后被移动或参数被替换，"
        "或该 rank 在其他 rank 的 GPU 上计算。请调用 torch.cuda.set_device(local_rank)，并在包装之前移动模型。",
    ),
)
