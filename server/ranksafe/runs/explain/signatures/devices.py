"""Where tensors and models live: device maps, DTensor, mixed devices, CUDA errors."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

_DEVICE_MAP_EN = (
    'Drop device_map under a launcher, or use {{"": PartialState().local_process_index}}.'
)
_DEVICE_MAP_ZH = (
    '每个 GPU 一个进程训练时请去掉 device_map，或使用 {{"": PartialState().local_process_index}}。'
)

_LATER_EN = (
    "Kernels run later than the Python line that starts them, so the line shown is approximate: run again with "
    "CUDA_LAUNCH_BLOCKING=1 to get the right one."
)
_LATER_ZH = (
    "kernel 晚于启动它的 Python 行执行，因此所示行只是近似："
    "请用 CUDA_LAUNCH_BLOCKING=1 重新运行以得到准确的行。"
)

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "device-map-in-distributed-training",
        r"got mixed torch\.Tensor and DTensor",
        frames=r"_sync_params_and_buffers|distributed/utils\.py|nn/parallel/distributed\.py|accelerator\.py:prepare",
        code="RS201",
        candidates=("RS201", "RS203"),
        en="from_pretrained with device_map='auto' or tp_plan under a launcher split the model by tensor parallelism "
        "(DTensor), and DistributedDataParallel cannot wrap that. " + _DEVICE_MAP_EN,
        zh="在启动器下，from_pretrained 的 device_map='auto' 或 tp_plan 用张量并行（DTensor）切分了模型，而 "
        "DistributedDataParallel 无法包装它。" + _DEVICE_MAP_ZH,
    ),
    signature(
        "mixed-tensor-and-dtensor",
        # torch 2.4 to 2.13: the multi-tensor kernels of clip_grad_norm_ and of the optimizers.
        r"aten\._(?:foreach|fused)_\w+[\w.]* got mixed torch\.Tensor and DTensor",
        en="Some of the parameters are sharded (DTensor) and others are not, and this call takes all of them "
        "together: call fully_shard on the root module, too, so that all are sharded, or treat the two kinds in "
        "separate calls (clip_grad_norm_, optimizer groups with foreach=False).",
        zh="一部分参数是分片的（DTensor），另一部分不是，而该调用同时处理它们：请对根模块也调用 fully_shard，使全部参数"
        "都分片，或把两类参数分开处理（clip_grad_norm_，或 foreach=False 的优化器参数组）。",
    ),
    signature(
        "mixed-tensor-and-dtensor",
        r"got mixed torch\.Tensor and DTensor",
        en="An operation got a DTensor (a sharded parameter) and an ordinary tensor. Under FSDP2 or tensor "
        "parallelism use the wrapped module's forward, not its weights one by one.",
        zh="某个操作同时收到了 DTensor（分片参数）和普通张量。在 FSDP2 或张量并行下，请使用包装模块的 "
        "forward，而不要单独使用其权重。",
    ),
    signature(
        "device-map-in-distributed-training",
        r"found no DeviceMesh from dtensor args|c10d\.broadcast_\.default does not have a sharding strategy"
        r"|contains .DTensor. parameters, which is incompatible with DDP",
        code="RS201",
        en="The model's parameters are DTensors (device_map='auto' or tp_plan under a launcher), which "
        "DistributedDataParallel cannot wrap. " + _DEVICE_MAP_EN,
        zh="模型参数是 DTensor（启动器下的 device_map='auto' 或 tp_plan），DistributedDataParallel 无法包装。"
        + _DEVICE_MAP_ZH,
    ),
    signature(
        "device-map-in-distributed-training",
        r"loaded with .?device_map='?auto'?.? in any distributed mode",
        code="RS201",
        en="accelerate refuses to train a model loaded with device_map='auto' in several processes. "
        + _DEVICE_MAP_EN,
        zh="accelerate 拒绝在多进程中训练以 device_map='auto' 加载的模型。" + _DEVICE_MAP_ZH,
    ),
    signature(
        "device-map-in-distributed-training",
        r"does not have a tensor parallel plan",
        code="RS201",
        en="Under a launcher this version of transformers takes device_map='auto' for tensor parallelism, "
        "which this model does not support. " + _DEVICE_MAP_EN,
        zh="在启动器下，此版本的 transformers 把 device_map='auto' 当作张量并行，而该模型不支持。"
        + _DEVICE_MAP_ZH,
    ),
    signature(
        "quantized-device-map",
        r"loaded in 8-bit or 4-bit precision on (?:a different device|multiple devices)",
        code="RS202",
        en="A quantised model must be loaded on the rank's own device before training. "
        + _DEVICE_MAP_EN,
        zh="量化模型必须在训练前加载到该 rank 自己的设备上。" + _DEVICE_MAP_ZH,
    ),
    signature(
        "device-mismatch",
        r"Expected all tensors to be on the same device",
        frames=r"parallel_apply\.py|data_parallel\.py|/forward|:forward",
        user_frame=r"\.cuda\(\s*\d|cuda:\d",
        code="RS210",
        en="forward names a fixed device, but it runs on another one too (a replica of nn.DataParallel, or "
        "another rank). Use the device of an input.",
        zh="forward 中写死了设备，但它也会在其他设备上运行（nn.DataParallel 的副本或其他 rank）。"
        "请使用输入所在的设备。",
    ),
    signature(
        "device-mismatch",
        r"Expected all tensors to be on the same device, but (?:found at least two devices, |got \w+ is on )"
        r"(?:(?P<gpu>cuda:\d+),? (?:and|different from other tensors on) cpu|cpu,? (?:and"
        r"|different from other tensors on) "
        r"(?P<other>cuda:\d+))"
        r"(?:[^(\n]*\(when checking argument for argument (?P<argument>\w+) in method (?P<method>\w+)\))?",
        plain=True,
        en="One tensor is on the CPU and another on the GPU[[ ({gpu})]][[ ({other})]][[; it is argument {argument} of "
        "{method}]]. "
        "Move the one that was left on the CPU with .to(other.device).",
        zh="一个张量在 CPU 上，另一个在 GPU[[（{gpu}）]][[（{other}）]] 上[[，涉及 {method} 的参数 {argument}]]。请用 "
        ".to(other.device) "
        "移动留在 CPU 上的张量。",
    ),
    signature(
        "device-mismatch",
        r"Expected all tensors to be on the same device(?:, but (?:found at least two devices, |got \w+ is on )"
        r"(?P<one>[\w:]+?),? (?:and|different from other tensors on) (?P<two>[\w:]+))?"
        r"(?:[^(\n]*\(when checking argument for argument (?P<argument>\w+) in method (?P<method>\w+)\))?",
        candidates=("RS513", "RS510", "RS511", "RS512", "RS211", "RS210", "RS515"),
        en="An operation mixes tensors of two devices[[ ({one} and {two})]][[; it is argument {argument} of "
        "{method}]]. Look for a tensor kept as a plain attribute, "
        "a method or a device captured in __init__, or a fixed index such as cuda:0: they do not follow the "
        "model to its replica or rank.",
        zh="某个操作混用了两个设备[[（{one} 与 {two}）]]上的张量[[，涉及 {method} 的参数 {argument}]]。"
        "请检查作为普通属性保存的张量、"
        "在 __init__ 中捕获的方法或设备，"
        "以及 cuda:0 这样写死的序号：它们不会随模型移动到副本或 rank。",
    ),
    signature(
        "cuda-assert",
        # ATen/native/cuda/Indexing.cu; two ranks' lines may be mixed into one.
        r"Indexing\.cu:\d+: \w+: block: \[[\s\S]*?Assertion `\w+ < \w+` failed",
        en="An index was out of range in an index_select or embedding: usually a token id beyond the vocabulary, or a "
        "vocabulary that grew without resize_token_embeddings. " + _LATER_EN,
        zh="index_select 或 embedding 中的索引越界：通常是 token id 超出词表，或词表扩大后没有调用 "
        "resize_token_embeddings。" + _LATER_ZH,
    ),
    signature(
        "cuda-assert",
        r"(?:Loss\.cu|NLLLoss2d\.cu):\d+: [\s\S]*?Assertion `t >= 0 && t < n_classes` failed",
        en="A label was outside of the classes in a loss: it must be from 0 to the number of classes minus one. "
        + _LATER_EN,
        zh="损失中的标签超出类别范围：必须在 0 到类别数减一之间。" + _LATER_ZH,
    ),
    signature(
        "cuda-assert",
        r"Loss\.cu:\d+: [\s\S]*?Assertion `input_val >= zero && input_val <= one` failed",
        en="binary_cross_entropy got values outside of 0 to 1 (or NaN): apply a sigmoid first, or use "
        "binary_cross_entropy_with_logits. " + _LATER_EN,
        zh="binary_cross_entropy 收到了 0 到 1 之外的值（或 NaN）：请先做 sigmoid，或使用 "
        "binary_cross_entropy_with_logits。" + _LATER_ZH,
    ),
    signature(
        "cuda-assert",
        r"ScatterGatherKernel\.cu:\d+: [\s\S]*?Assertion `idx_dim >= 0 && idx_dim < index_size",
        en="An index was out of range in a gather or scatter; in a loss, usually labels that are not smaller than the "
        "number of classes. " + _LATER_EN,
        zh="gather 或 scatter 中的索引越界；在损失函数中通常是标签不小于类别数。" + _LATER_ZH,
    ),
    signature(
        "cuda-assert",
        r"IndexKernel(?:Utils)?\.cu:\d+: [\s\S]*?Assertion `-sizes\[i\] <= index && index < sizes\[i\]",
        en="An index was out of range in an indexing expression (x[index]). " + _LATER_EN,
        zh="索引表达式（x[index]）中的索引越界。" + _LATER_ZH,
    ),
    signature(
        "cuda-assert",
        r"probability tensor contains either `inf`, `nan` or element < 0",
        en="torch.multinomial got probabilities that are NaN, infinite or negative: the model's output broke down "
        "before "
        "(half precision, too high a learning rate). " + _LATER_EN,
        zh="torch.multinomial 收到了 NaN、无穷或负的概率：模型输出在此之前已经崩溃（半精度、学习率过高）。"
        + _LATER_ZH,
    ),
    signature(
        "cuda-assert",
        r"CUDA error: device-side assert triggered|\.cu:\d+: [\s\S]*?block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] "
        r"Assertion `[^`]+` failed",
        en="A check inside a GPU kernel failed: most often an index out of range (labels beyond the number of "
        "classes, "
        "token ids beyond the vocabulary). " + _LATER_EN,
        zh="GPU kernel 内部的检查失败：多半是索引越界（标签超出类别数，或 token id 超出词表）。"
        + _LATER_ZH,
    ),
    signature(
        "dtype-mismatch",
        r"mat1 and mat2 must have the same dtype, but got (?P<one>\w+) and (?P<two>\w+)"
        r"|expected (?:scalar type|m1 and m2 to have the same dtype, but got:) (?P<first>\w+) (?:but found"
        r"|!=) (?P<second>\w+)",
        en="An operation got tensors of two types ([[{one} and {two}]][[{first} and {second}]]): cast the input to "
        "the layer's "
        "type (x.to(layer.weight.dtype)), load the model in one type, or run the forward under autocast.",
        zh="某个操作收到了两种类型的张量（[[{one} 与 {two}]][[{first} 与 {second}]]）：请把输入转换为该层的类型"
        "（x.to(layer.weight.dtype)），以同一类型加载模型，或在 autocast 下运行 forward。",
    ),
    signature(
        "cuda-illegal-access",
        r"an illegal memory access was encountered|misaligned address",
        en="A GPU kernel accessed memory it may not. The line is approximate: run again with "
        "CUDA_LAUNCH_BLOCKING=1. The NCCL watchdog often prints this first; it is a crash, not a hang.",
        zh="GPU kernel 非法访问了内存。行号只是近似：请用 CUDA_LAUNCH_BLOCKING=1 重新运行。"
        "NCCL watchdog 常常最先打印此消息；这是崩溃，不是挂起。",
    ),
    signature(
        "gpu-hardware",
        r"uncorrectable ECC error|GPU has fallen off the bus|NVRM: Xid \(\S+\): (?:48|79|94|95),",
        en="The GPU of this rank has a hardware fault; your code is not the cause. Leave this GPU out (by its UUID in "
        "CUDA_VISIBLE_DEVICES, or the machine with --exclude), and have it checked.",
        zh="该 rank 的 GPU 出现硬件故障，与你的代码无关。请排除该 GPU（在 CUDA_VISIBLE_DEVICES 中用 UUID 指定其他 "
        "GPU，"
        "或用 --exclude 排除该机器），并报修。",
    ),
    signature(
        "too-few-gpus",
        r"CUDA error: invalid device ordinal",
        en="A rank asked for a GPU index that is not there: more processes per machine (num_processes) than visible "
        "GPUs, or the global RANK used where LOCAL_RANK is meant.",
        zh="某个 rank 请求的 GPU 序号不存在：每台机器的进程数（num_processes）多于可见 GPU 数，或在应使用 LOCAL_RANK "
        "的地方用了全局 RANK。",
    ),
    signature(
        "gpu-busy",
        r"CUDA-capable device(?:s|\(s\)) (?:are|is/are) busy",
        en="Another process holds this GPU in exclusive mode, or the driver is in a bad state. `nvidia-smi` lists the "
        "holders; choose another GPU with CUDA_VISIBLE_DEVICES.",
        zh="另一个进程以独占模式占用了该 GPU，或驱动状态异常。`nvidia-smi` 会列出占用者；请用 CUDA_VISIBLE_DEVICES "
        "选择其他 GPU。",
    ),
    signature(
        "checkpoint-device",
        r"Attempting to deserialize object on (?:a )?CUDA device",
        en="The checkpoint names a CUDA device that does not exist here. Pass map_location to torch.load.",
        zh="检查点记录的 CUDA 设备在此不存在。请给 torch.load 传入 map_location。",
    ),
    signature(
        "too-few-gpus",
        # torch/cuda/__init__.py, _lazy_init; aten/src/ATen/cuda/CUDAContext.cpp.
        r"device < num_gpus INTERNAL ASSERT FAILED[^\n]*device=(?P<device>\d+), num_gpus=(?P<gpus>\d+)",
        en="This rank asks for GPU {device} and sees {gpus} (counted from 0): each process was given fewer GPUs than "
        "the script counts on (CUDA_VISIBLE_DEVICES, Slurm's --gpus-per-task), or it changed after torch was "
        "imported.",
        zh="该 rank 请求 GPU {device}，而它只看到 {gpus} 个（从 0 计数）：分给每个进程的 GPU 少于脚本所需"
        "（CUDA_VISIBLE_DEVICES、Slurm 的 --gpus-per-task），或在导入 torch 之后发生了变化。",
    ),
    signature(
        "cuda-library-error",
        # CUBLAS_STATUS_ALLOC_FAILED is known as out of memory.
        r"CUDA error: (?P<blas>CUBLAS_STATUS_\w+)|cuDNN error: (?P<dnn>CUDNN_STATUS_\w+)"
        r"|cuFFT error: (?P<fft>CUFFT_\w+)|CUDA error: (?P<launch>unspecified launch failure)",
        en="A CUDA library failed ([[{blas}]][[{dnn}]][[{fft}]][[{launch}]]) and does not say why: most often GPU "
        "memory "
        "is nearly full, an index was out of range before, or the library does not fit the driver. "
        + _LATER_EN,
        zh="CUDA 库出错（[[{blas}]][[{dnn}]][[{fft}]][[{launch}]]），没有说明原因："
        "多半是显存将满、之前有索引越界，或库与驱动不匹配。" + _LATER_ZH,
    ),
    signature(
        "too-few-gpus",
        # torch 1.x to 2.13, torch/cuda/__init__.py: get_device_properties and its kin.
        r"\AAssertionError: Invalid device id\Z",
        raised_only=True,
        en="A GPU number is used that this process does not see: device_ids or .to(…) name more GPUs than there are, "
        "or CUDA_VISIBLE_DEVICES shows only some, which are counted from 0.",
        zh="使用了该进程看不到的 GPU 编号：device_ids 或 .to(…) 指定的 GPU 多于实际数量，或 CUDA_VISIBLE_DEVICES "
        "只显示了一部分，它们从 0 开始编号。",
    ),
    signature(
        "too-few-gpus",
        # torch 1.13 to 2.13, torch/cuda/__init__.py and c10/cuda/CUDAFunctions.h.
        r"device >= 0 && device < num_gpus INTERNAL ASSERT FAILED",
        raised_only=True,
        en="A GPU number is used that this process does not see: more processes per machine than visible GPUs, the "
        "global RANK used where LOCAL_RANK is meant, or CUDA_VISIBLE_DEVICES changed after torch was imported.",
        zh="使用了该进程看不到的 GPU 编号：每台机器的进程多于可见的 GPU、把全局 RANK 当作 LOCAL_RANK 使用，或在导入 "
        "torch 之后修改了 CUDA_VISIBLE_DEVICES。",
    ),
    signature(
        "device-mismatch",
        # torch up to 1.7.
        r"expected device (?P<one>cuda:\d+|cpu) but got device (?P<two>cuda:\d+|cpu)"
        r"|arguments are located on different GPUs",
        raised_only=True,
        en="An operation mixes tensors of two devices[[ ({one} and {two})]]. Look for a tensor kept as a plain "
        "attribute, or a fixed index such as cuda:0: they do not follow the model to its replica or rank.",
        zh="某个操作混用了两个设备[[（{one} 与 {two}）]]上的张量。请检查作为普通属性保存的张量，以及 cuda:0 这样写死的"
        "序号：它们不会随模型移动到副本或 rank。",
    ),
    signature(
        "meta-tensor",
        r"Tensor on device (?P<device>\S+) is not on the expected device meta",
        raised_only=True,
        en="A part of the model is still on the meta device, without any values: its weights were not loaded "
        "(low_cpu_mem_usage, device_map, init_empty_weights), or it was left out of the checkpoint.",
        zh="模型的一部分仍在 meta 设备上，没有实际数值：其权重没有被加载（low_cpu_mem_usage、device_map、"
        "init_empty_weights），或不在检查点中。",
    ),
    signature(
        "torch-internal-error",
        r"INTERNAL ASSERT FAILED at \"?(?P<where>[^\"\n]+?)\"?(?:, line |:)(?P<line>\d+), please report a bug to "
        r"PyTorch"
        r"(?:\. (?P<why>[^\n]+))?",
        raised_only=True,
        en="A check inside torch itself failed ({where}:{line})[[: {why}]] This line asks for something that torch "
        "did not expect there: a bug of torch, or libraries that do not fit it. Look for the words in torch's issues.",
        zh="torch 自身的内部检查失败（{where}:{line}）[[：{why}]]。该行触发了 torch 未预料到的情况：torch 的缺陷，"
        "或库与其不匹配。"
        "请用消息文字在 torch 的 issue 中搜索。",
    ),
)
