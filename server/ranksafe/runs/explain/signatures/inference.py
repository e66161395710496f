"""Engines that serve a model over several GPUs (vLLM), alone or inside of training with reinforcement learning."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "engine-memory",
        # vLLM 0.8 to 0.11, vllm/v1/worker/gpu_worker.py.
        r"Free memory on device (?:\S+ )?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less than desired "
        r"GPU memory utilization \((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        en="vLLM wants {wanted} GiB of the GPU (gpu_memory_utilization={share}), and only {free} of {total} GiB are "
        "free: another process, or the trainer of the same job, holds the rest. Lower gpu_memory_utilization, or free "
        "the GPU first (nvidia-smi shows who holds it).",
        zh="vLLM 需要 {wanted} GiB 显存（gpu_memory_utilization={share}），而 {total} GiB 中只有 {free} GiB 空闲：其余"
        "被其他进程或同一作业的训练部分占用。请降低 gpu_memory_utilization，或先释放显存（nvidia-smi 会显示占用者）。",
    ),
    signature(
        "engine-memory",
        # vLLM's sleep mode, csrc/cumem_allocator.cpp; vllm-project/vllm#12981, #13941.
        r"CUDA Error: out of memory at \S*cumem_allocator\.cpp",
        en="The GPU has not enough memory left for what vLLM's sleep mode allocates, most often when the engine wakes "
        "up and takes its weights and cache back: training on the same GPU still holds it. Lower "
        "gpu_memory_utilization, or let the trainer give memory back before (offload its state, "
        "torch.cuda.empty_cache()).",
        zh="显存不足以满足 vLLM 休眠模式的分配，多发生在引擎被唤醒、收回权重与缓存时：同一 GPU 上的训练仍占用显存。"
        "请降低 gpu_memory_utilization，或让训练部分事先释放显存（卸载其状态、torch.cuda.empty_cache()）。",
    ),
    signature(
        "engine-memory",
        r"No available memory for the cache blocks|To serve at least one request with the models?'s max seq len "
        r"\((?P<length>\d+)\)|(?:larger|greater) than the maximum number of tokens that can be stored in KV cache",
        en="After the model's weights no GPU memory is left for the cache of a request of full length[[ ({length} "
        "tokens)]]. Lower max_model_len, raise gpu_memory_utilization, or spread the model over more GPUs "
        "(tensor_parallel_size).",
        zh="加载模型权重之后，没有足够的显存缓存一个完整长度的请求[[（{length} 个 token）]]。请降低 max_model_len，"
        "提高 gpu_memory_utilization，或把模型分布到更多 GPU（tensor_parallel_size）。",
    ),
    signature(
        "parallel-sizes",
        r"(?:attention|kv|query) heads \((?P<heads>\d+)\) must be divisible by tensor (?:model )?parallel size "
        r"\((?P<size>\d+)\)",
        en="The model's {heads} heads cannot be shared out evenly over {size} GPUs: take a tensor parallel size that "
        "divides {heads}.",
        zh="模型的 {heads} 个注意力头无法平均分到 {size} 个 GPU：请选择能整除 {heads} 的张量并行大小。",
    ),
    signature(
        "parallel-sizes",
        # Megatron-LM, NeMo, vLLM, verl: the sizes must multiply to the number of processes.
        r"world[_ ]size (?:\((?P<world>\d+)\) )?(?:is not|must be|not) divisible by|must divide world[_ ]size"
        r"|must be divisible by (?:the )?(?:tensor|pipeline)[_ -]?(?:model[_ -])?parallel[_ -]size"
        r"|is not divisible by (?:tensor|pipeline)[_ -]?(?:model[_ -])?parallel",
        en="The sizes of the parallel groups do not fit the number of processes[[ ({world})]] or the model: tensor "
        "times pipeline times context parallel size must divide the number of processes, and heads, layers and "
        "vocabulary must divide by their sizes.",
        zh="各并行组的大小与进程数[[（{world}）]]或模型不符：张量、流水线与上下文并行大小之积必须能整除进程数，"
        "注意力头数、层数和词表大小也要能被相应的大小整除。",
    ),
    signature(
        "too-few-gpus",
        r"The number of required GPUs exceeds the total number of available GPUs"
        r"|Total available GPUs (?P<have>\d+) is less than total desired GPUs (?P<want>\d+)",
        en="More GPUs are asked for[[ ({want})]] than Ray has[[ ({have})]]: fewer machines joined its cluster than the "
        "settings count on, another job holds them, or CUDA_VISIBLE_DEVICES hides some (ray status shows it).",
        zh="请求的 GPU[[（{want}）]]多于 Ray 拥有的[[（{have}）]]：加入集群的机器少于设置中的数量、被其他作业占用，"
        "或被 CUDA_VISIBLE_DEVICES 隐藏（ray status 可见）。",
    ),
    signature(
        "engine-died",
        # vLLM 0.8 to 0.11, vllm/v1/utils.py; the cause is in the log of the process that it started.
        r"Engine core initialization failed\. See root cause above|EngineDeadError|Engine process failed to start"
        r"|WorkerProc initialization failed due to an exception in a background process",
        secondary=True,
        en="vLLM's own process ended while it started; the reason is what that process printed before.",
        zh="vLLM 自己的进程在启动时结束；原因见该进程之前的输出。",
    ),
)
