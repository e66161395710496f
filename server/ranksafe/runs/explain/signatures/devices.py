"""Where tensors and models live: device maps, DTensor, mixed devices, CUDA errors."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

_DEVICE_MAP_EN = (
    'Drop device_map under a launcher, or use {{"": PartialState().local_process_index}}.'
)
_DEVICE_MAP_ZH = (
    '每个 GPU 一个进程训练时请去掉 device_map，或使用 {{"": PartialState().local_process_index}}。'
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
        r"Expected all tensors to be on the same device(?:, but (?:found at least two devices, |got \w+ is on )"
        r"(?P<one>[\w:]+?),? (?:and|different from other tensors on) (?P<two>[\w:]+))?",
        candidates=("RS513", "RS510", "RS511", "RS512", "RS211", "RS210", "RS515"),
        one="?",
        two="?",
        en="An operation mixes tensors of two devices ({one} and {two}). Look for a tensor kept as a plain attribute, "
        "a method or a device captured in __init__, or a fixed index such as cuda:0: they do not follow the "
        "model to its replica or rank.",
        zh="某个操作混用了两个设备（{one} 与 {two}）上的张量。请检查作为普通属性保存的张量、"
        "在 __init__ 中捕获的方法或设备，"
        "以及 cuda:0 这样写死的序号：它们不会随模型移动到副本或 rank。",
    ),
    signature(
        "cuda-out-of-memory",
        r"CUDA out of memory(?:\. Tried to allocate (?P<asked>[\d.]+ \w+))?|CUDA error: out of memory"
        r"|cuda runtime error \(2\) ?: out of memory|CUBLAS_STATUS_ALLOC_FAILED",
        asked="?",
        en="Out of GPU memory (asked for {asked}). Use a smaller batch per process with gradient "
        "accumulation, gradient checkpointing or a sharded strategy; if other ranks have contexts on this "
        "GPU, a rank forgot torch.cuda.set_device.",
        zh="GPU 显存不足（请求 {asked}）。请减小每个进程的批大小并配合梯度累积，或使用梯度检查点、分片策略；"
        "如果其他 rank 也占用了该 GPU，说明有 rank 忘了调用 torch.cuda.set_device。",
    ),
    signature(
        "cuda-assert",
        r"device-side assert|Indexing\.cu.*Assertion|Assertion `.+?` failed",
        en="An index was out of range in a GPU kernel (labels beyond the number of classes, ids beyond the "
        "vocabulary). The line is approximate because kernels run later: run again with "
        "CUDA_LAUNCH_BLOCKING=1, or on the CPU.",
        zh="GPU kernel 中的索引越界（标签超出类别数，或 id 超出词表）。由于 kernel 异步执行，行号只是近似："
        "请用 CUDA_LAUNCH_BLOCKING=1 重新运行，或在 CPU 上运行。",
    ),
    signature(
        "cuda-illegal-access",
        r"an illegal memory access was encountered|misaligned address",
        en="A GPU kernel accessed memory it may not. The line is approximate: run again with "
        "CUDA_LAUNCH_BLOCKING=1.",
        zh="GPU kernel 非法访问了内存。行号只是近似：请用 CUDA_LAUNCH_BLOCKING=1 重新运行。",
    ),
    signature(
        "gpu-hardware",
        r"uncorrectable ECC|GPU has fallen off|Xid.*(?:48|79|94|95)",
        en="The GPU has a hardware fault; your code is not the cause. Leave this GPU out.",
        zh="GPU 出现硬件故障，与你的代码无关。请不要使用该 GPU。",
    ),
    signature(
        "too-few-gpus",
        r"invalid device ordinal",
        en="A rank asked for a GPU index that is not there: more processes than visible GPUs, or the global "
        "RANK used where LOCAL_RANK is meant.",
        zh="某个 rank 请求的 GPU 序号不存在：进程数多于可见 GPU 数，或在应使用 LOCAL_RANK 的地方用了全局 RANK。",
    ),
    signature(
        "gpu-busy",
        r"CUDA-capable device(?:s|\(s\)) (?:are|is/are) busy",
        en="Another process holds this GPU in exclusive mode.",
        zh="另一个进程以独占模式占用了该 GPU。",
    ),
    signature(
        "checkpoint-device",
        r"Attempting to deserialize object on (?:a )?CUDA device",
        en="The checkpoint names a CUDA device that does not exist here. Pass map_location to torch.load.",
        zh="检查点记录的 CUDA 设备在此不存在。请给 torch.load 传入 map_location。",
    ),
)
