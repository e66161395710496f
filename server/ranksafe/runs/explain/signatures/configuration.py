"""Settings that a framework refuses: Trainer, DeepSpeed, Hydra, Lightning, configuration files.

Worded as transformers 5.23.0 and torch 2.13.0 (``torch/utils/cpp_extension.py``) do, and as public logs and the
threads named beside the signatures have it from the others.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

_EN = " This has nothing to do with several GPUs."
_ZH = "这与多 GPU 无关。"

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "deepspeed-settings",
        # Since DeepSpeed 0.16.0: deepspeedai/DeepSpeed#6793, huggingface/transformers#35157.
        r"no_sync context manager is incompatible with gradient partitioning logic of ZeRO stage (?P<stage>\d)",
        en="Gradient accumulation calls no_sync, which DeepSpeed refuses under ZeRO stage {stage}: the versions of "
        "accelerate (or transformers) and DeepSpeed do not fit. Update accelerate, or take DeepSpeed before 0.16.",
        zh="梯度累积会调用 no_sync，而 DeepSpeed 在 ZeRO stage {stage} 下拒绝它：accelerate（或 transformers）与 "
        "DeepSpeed "
        "的版本不匹配。请升级 accelerate，或使用 0.16 之前的 DeepSpeed。",
    ),
    signature(
        "deepspeed-settings",
        r"train_batch_size is not equal to micro_batch_per_gpu \* gradient_acc_step \* world_size "
        r"(?P<batch>\d+) != (?P<micro>\d+) \* (?P<steps>\d+) \* (?P<world>\d+)",
        en="DeepSpeed's batch sizes do not multiply: train_batch_size {batch} is not {micro} (per GPU) x {steps} "
        "(accumulation steps) x {world} (ranks). Set two of them and leave the third out, or to auto.",
        zh="DeepSpeed 的批大小不成立：train_batch_size {batch} 不等于 {micro}（每 GPU）x {steps}（累积步数）x {world}"
        "（rank 数）。请只设置其中两个，第三个不设或设为 auto。",
    ),
    signature(
        "deepspeed-settings",
        r"Please correct the following DeepSpeed config values that mismatch TrainingArguments "
        r"values:\s*(?P<first>[^\n]+)",
        en="DeepSpeed's configuration and the TrainingArguments disagree ({first}): set the values in one place and "
        '"auto" in the other.',
        zh="DeepSpeed 配置与 TrainingArguments 不一致（{first}）：请只在一处设置，另一处用“auto”。",
    ),
    signature(
        "deepspeed-settings",
        r"DeepSpeed Zero-3 is not compatible with",
        en="The model is loaded in a way that ZeRO-3 cannot have (low_cpu_mem_usage or device_map): leave that "
        "argument "
        "out.",
        zh="模型的加载方式与 ZeRO-3 不兼容（low_cpu_mem_usage 或 device_map）：请去掉该参数。",
    ),
    signature(
        "cuda-build-mismatch",
        r"Installed CUDA version (?P<cuda>[\d.]+) does not match the version torch was compiled with (?P<torch>[\d.]+)"
        r"|The detected CUDA version \((?P<found>[\d.]+)\) mismatches the version that was used to compile\s+PyTorch "
        r"\((?P<built>[\d.]+)\)",
        en="An extension is to be compiled with CUDA[[ {cuda}]][[ {found}]], and torch was built with[[ {torch}]]"
        "[[ {built}]]. Point CUDA_HOME to a toolkit of torch's CUDA version, or install a torch for this one."
        + _EN,
        zh="要用 CUDA[[ {cuda}]][[ {found}]] 编译扩展，而 torch 由 CUDA[[ {torch}]][[ {built}]] 构建。请让 CUDA_HOME "
        "指向与 torch 相同版本的工具包，或安装适配此版本的 torch。" + _ZH,
    ),
    signature(
        "missing-cuda-toolkit",
        r"CUDA_HOME (?:environment variable is not set|does not exist, unable to compile CUDA op)",
        en="An extension is to be compiled and no CUDA toolkit is found: install one (nvcc) that fits torch's CUDA "
        "version, and set CUDA_HOME." + _EN,
        zh="需要编译扩展，但找不到 CUDA 工具包：请安装与 torch 的 CUDA 版本相配的工具包（nvcc），并设置 CUDA_HOME。"
        + _ZH,
    ),
    signature(
        "extension-not-built",
        r"RuntimeError: Error building extension '(?P<name>[^']+)'|Ninja is required to load C\+\+ extensions"
        r"|Unable to JIT load the (?P<op>\w+) op"
        # torch/utils/cpp_extension.py, _run_ninja_build, whose own RuntimeError may be cut off.
        r"|Command '\['ninja'[^\]\n]*\]' returned non-zero exit status"
        r"|\S*torch_extensions/\S*/(?P<library>\w+)\.so: cannot open shared object file",
        raised_only=True,
        en="A compiled extension could not be built[[: {name}]][[: {op}]][[: {library}]]. The compiler's own error "
        "stands above this one: a missing ninja, nvcc or header, or a compiler that does not fit.",
        zh="无法构建编译扩展[[：{name}]][[：{op}]][[：{library}]]。编译器自身的错误在此消息之前："
        "缺少 ninja、nvcc 或头文件，或编译器版本不符。",
    ),
    signature(
        "sharded-weight",
        # DeepSpeed ZeRO-3 leaves an empty tensor in place of each parameter; transformers, torch.
        r"'weight' must be 2-D|Trying to set a tensor of shape torch\.Size\(\[0\]\)"
        r"|size mismatch for [^\n]*: copying a param with shape torch\.Size\(\[0\]\)"
        r"|setStorage: sizes [^\n]* are out of bounds for storage of size 0",
        en="A weight is empty or flat instead of whole: under DeepSpeed ZeRO-3 (shape [0]) and FSDP each rank holds "
        "only its share outside of the wrapped model's own forward. Call the wrapped model rather than its parts, or "
        "gather the weight first (deepspeed.zero.GatheredParameters, FSDP.summon_full_params); ZeRO-3 saves whole "
        "weights only with stage3_gather_16bit_weights_on_model_save.",
        zh="某个权重为空或被展平，而不是完整的：在 DeepSpeed ZeRO-3（形状 [0]）和 FSDP 下，除包装模型自身的 forward "
        "之外每个 rank 只持有自己的分片。请调用包装后的模型而不是其部件，或先收集权重"
        "（deepspeed.zero.GatheredParameters、FSDP.summon_full_params）；ZeRO-3 只有在启用 "
        "stage3_gather_16bit_weights_on_model_save 时才保存完整权重。",
    ),
    signature(
        "quantized-on-other-device",
        # transformers' Trainer through accelerate 0.20 to 1.x, accelerator.py, prepare_model.
        r"You can't train a model that has been loaded in (?P<bits>\S+ precision|8-bit or 4-bit precision) on a "
        r"different device",
        en="The quantised model lies on another GPU than this rank's. Load it on the rank's own: "
        'device_map={{"": PartialState().process_index}}.',
        zh="量化模型不在该 rank 自己的 GPU 上。请把它加载到自己的 GPU："
        'device_map={{"": PartialState().process_index}}。',
    ),
    signature(
        "fsdp-quantized",
        # torch 2.x, torch/distributed/fsdp/_flat_param.py.
        r"Cannot flatten integer dtype tensors",
        en="FSDP cannot shard integers, and quantised weights are stored as such. Store them as floats: "
        "bnb_4bit_quant_storage=torch.bfloat16, the same type as the rest of the model.",
        zh="FSDP 无法对整数分片，而量化权重以整数存储。请以浮点类型存储：bnb_4bit_quant_storage=torch.bfloat16，"
        "与模型其余部分的类型相同。",
    ),
    signature(
        "fsdp-quantized",
        # bitsandbytes 0.41 to 0.48 with torch's FSDP: the state dict splits the weight and drops what belongs to it.
        r"'(?P<type>Params4bit|Int8Params)' object has no attribute '(?P<name>\w+)'",
        raised_only=True,
        en="A quantised weight ({type}) was taken apart as if it were an ordinary one, and its {name} is gone: FSDP's "
        "state dict does not know weights of bitsandbytes. Save only the adapter (PEFT's save_pretrained on the "
        "unwrapped model), or use versions of torch, bitsandbytes and peft that support QLoRA with FSDP.",
        zh="量化权重（{type}）被当作普通权重拆分，其 {name} 丢失：FSDP 的 state dict 不支持 bitsandbytes 的权重。"
        "请只保存适配器（对解包后的模型使用 PEFT 的 save_pretrained），或使用支持 FSDP 与 QLoRA 的 torch、"
        "bitsandbytes 和 peft 版本。",
    ),
    signature(
        "batch-size-zero",
        r"batch_size should be a positive integer value, but got batch_size=(?P<size>-?\d+)",
        en="The DataLoader gets batch_size={size}: often a total batch size that was divided by more processes or "
        "workers than it has samples.",
        zh="DataLoader 得到的 batch_size={size}：通常是总批大小除以了多于其样本数的进程数或 worker 数。",
    ),
    signature(
        "trust-remote-code",
        r"(?:requires you to execute the \S+ file in that repo|contains custom code which must be executed)",
        en="The model brings code of its own, which transformers runs only with trust_remote_code=True. Read that code "
        "before you allow it.",
        zh="该模型自带代码，transformers 只有在 trust_remote_code=True 时才会运行它。允许之前请先阅读这些代码。",
    ),
    signature(
        "daemon-has-children",
        r"daemonic processes are not allowed to have children",
        en="A process that was started as a daemon (a DataLoader worker, a pool's) tries to start others. Load the "
        "data without workers there (num_workers=0), or start the outer process not as a daemon.",
        zh="以守护方式启动的进程（DataLoader worker、进程池）试图再启动进程。请在其中不使用 worker"
        "（num_workers=0），或不要以守护方式启动外层进程。",
    ),
    signature(
        "configuration",
        # hydra-core 1.3.8 prints it without a traceback.
        r"^Could not override '(?P<key>[^']+)'\.(?: |$)",
        plain=True,
        en="Hydra's configuration has no key {key} to override: it is misspelt or of another configuration. + before "
        "an override adds a new key.",
        zh="Hydra 的配置中没有可覆盖的键 {key}：拼写有误，或属于其他配置。在覆盖项前加 + 可新增键。",
    ),
)
