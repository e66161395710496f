"""Settings that the training loops of transformers, accelerate and Lightning refuse.

The words are those of transformers 5.23.0, accelerate 1.15.0 and lightning 2.6.6.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, ordinary

_SETTINGS = "trainer-settings"

SIGNATURES: tuple[Signature, ...] = (
    ordinary(
        "quantized-in-distributed-training",
        # The words of accelerate 1.15.0 and, without "or 4-bit", of 0.19.
        r"You can't train a model that has been loaded in 8-bit (?:or 4-bit )?precision on multiple devices in any "
        r"distributed mode",
        plain=False,
        en="A quantised model is spread over several GPUs by its device_map, and several processes train it. Load it "
        'whole on each process\'s own GPU: device_map={{"": local_rank}}.',
        zh="量化模型被 device_map 分布到多个 GPU，而又由多个进程训练。请在每个进程自己的 GPU 上完整加载："
        'device_map={{"": local_rank}}。',
    ),
    ordinary(
        "device-map",
        r"Some modules are dispatched on the CPU or the disk|You are trying to offload the whole model to the disk"
        r"|You can't move a model that has some modules offloaded to cpu or disk",
        plain=False,
        en="The model does not fit on the GPUs that this process sees, so parts of it went to the CPU or the disk. "
        "See who else uses these GPUs, load a smaller or quantised model, or show the process more GPUs.",
        zh="模型无法完全放入该进程可见的 GPU，其一部分被放到 CPU 或磁盘。请查看还有谁在使用这些 GPU，"
        "加载更小或量化的模型，或让进程看到更多 GPU。",
    ),
    ordinary(
        "cuda-out-of-memory",
        # accelerate/utils/memory.py, find_executable_batch_size.
        r"No executable batch size found, reached zero",
        plain=False,
        en="find_executable_batch_size halved the batch size until nothing was left: even one sample does not fit, "
        "or the error that it took for a lack of memory is another one (printed above, if at all). Each rank "
        "searches on its own, so ranks may also end up with different batch sizes.",
        zh="find_executable_batch_size 不断减半批大小直到为零：一个样本也放不下，"
        "或被当作内存不足的其实是其他错误（若有，见上方输出）。每个 rank 各自搜索，因此各 rank 的批大小也可能不同。",
    ),
    ordinary(
        "deepspeed-settings",
        r"Please correct the following DeepSpeed config values that mismatch",
        plain=False,
        en="The DeepSpeed configuration and the training arguments name different values (listed in the message): "
        'set those of the configuration to "auto".',
        zh='DeepSpeed 配置与训练参数给出了不同的值（列于消息中）：请把配置中的这些值设为 "auto"。',
    ),
    ordinary(
        "collective-shape-mismatch",
        # accelerate/utils/operations.py, with ACCELERATE_DEBUG_MODE=1.
        r"Cannot apply desired operation due to shape mismatches\. All shapes across devices must be valid",
        plain=False,
        en="The ranks give tensors of different shapes to one operation (the message lists them by process): pad "
        "them first with accelerator.pad_across_processes, or use gather_for_metrics for the last batch.",
        zh="各 rank 传给同一操作的张量形状不同（消息按进程列出）：请先用 accelerator.pad_across_processes 填充，"
        "最后一个批次可使用 gather_for_metrics。",
    ),
    ordinary(
        "batch-not-divisible",
        r"in `split_batches` mode, the batch size \((?P<size>\d+)\) needs to be a round multiple of the number of "
        r"processes \((?P<ranks>\d+)\)",
        plain=False,
        en="With split_batches a batch of {size} is divided among {ranks} ranks, which does not come out even: use a "
        "multiple of {ranks}.",
        zh="使用 split_batches 时，大小为 {size} 的批次要分给 {ranks} 个 rank，无法整除：请使用 {ranks} 的整数倍。",
    ),
    ordinary(
        _SETTINGS,
        r"`Trainer\(devices=(?P<devices>[^)]+)\)` value is not a valid input using (?P<accelerator>\w+) accelerator",
        plain=False,
        en="Lightning cannot use devices={devices} with the {accelerator} accelerator: fewer are there, or the value "
        "is of another form.",
        zh="Lightning 无法在 {accelerator} 上使用 devices={devices}：设备不足，或值的形式不对。",
    ),
    ordinary(
        "launch-mismatch",
        # Lightning 1.8 to 2.6, fabric/plugins/environments/slurm.py.
        r"\AValueError: You set `(?P<asked>[^`]+)` in Lightning, but [^\n]*?(?P<given>--[\w-]+=\d+)",
        plain=False,
        en="The Trainer is told {asked}, and the Slurm job has {given}: the two must agree, one task per GPU on every "
        "node (srun starts the ranks).",
        zh="Trainer 设置为 {asked}，而 Slurm 作业为 {given}：两者必须一致，每个节点上每个 GPU 一个任务（由 srun 启动各 "
        "rank）。",
    ),
    ordinary(
        "fork-after-cuda",
        # Lightning 1.8 to 2.6, fabric/strategies/launchers/multiprocessing.py.
        r"Lightning can't create new processes if CUDA is already initialized",
        plain=False,
        en="Something touched CUDA before the Trainer started its processes by fork (ddp_notebook): move every "
        "torch.cuda call and .cuda() into the model or after fit(), restart the kernel, or start a script instead of "
        "a notebook.",
        zh="在 Trainer 以 fork 方式启动进程（ddp_notebook）之前已经使用了 CUDA：请把 torch.cuda 调用和 .cuda() 移到模型"
        "内部或 fit() 之后，重启内核，或改用脚本而不是 notebook。",
    ),
)
