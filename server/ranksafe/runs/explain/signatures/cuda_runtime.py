"""Errors of the CUDA and HIP runtimes that name no tensor: the driver, the device, the machine.

The words are cudaGetErrorString's (CUDA 10 to 13, cuda_runtime_api.h) and hipGetErrorString's; torch puts
"CUDA error: " or "HIP error: " before them.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

_NOT_YOURS_EN = " It is a matter of the machine, not of your script."
_NOT_YOURS_ZH = "这是机器的问题，与你的脚本无关。"

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "gpu-architecture",
        r"HIP error: (?:invalid device function|no kernel image)|hipErrorNoBinaryForGpu|Unable to find code object",
        en="This build of torch, or of an extension, has no kernels for this AMD GPU. Install the build for your "
        "ROCm version and GPU, or, where a close relative is supported, set HSA_OVERRIDE_GFX_VERSION.",
        zh="此 torch 构建（或某个扩展）不包含该 AMD GPU 的 kernel。请安装与 ROCm 版本和 GPU 对应的构建；"
        "若相近型号受支持，可设置 HSA_OVERRIDE_GFX_VERSION。",
    ),
    signature(
        "gpu-not-ready",
        r"[Ss]ystem not yet initialized",
        en="The GPUs are connected by NVSwitch, and the service that sets it up does not run, or has another version "
        "than the driver: start nvidia-fabricmanager (error 802), in the version of the driver."
        + _NOT_YOURS_EN,
        zh="GPU 通过 NVSwitch 连接，而负责初始化它的服务没有运行，或版本与驱动不同：请启动与驱动版本一致的 "
        "nvidia-fabricmanager（错误 802）。" + _NOT_YOURS_ZH,
    ),
    signature(
        "fork-after-cuda",
        r"(?:CUDA|HIP) error: initialization error",
        en="CUDA could not be initialised in this process. Most often the process was forked after its parent had "
        "used CUDA (a DataLoader's worker, notebook_launcher, multiprocessing): touch CUDA only after the fork, or "
        "use the spawn start method. If it also fails in a fresh process, look at the driver (nvidia-smi).",
        zh="无法在此进程中初始化 CUDA。通常是父进程使用 CUDA 之后才 fork 出该进程（DataLoader worker、"
        "notebook_launcher、multiprocessing）：请在 fork 之后再使用 CUDA，或使用 spawn 启动方式。"
        "若在全新进程中也失败，请检查驱动（nvidia-smi）。",
    ),
    signature(
        "gpu-hardware",
        r"(?:CUDA|HIP) error: (?P<words>unknown error|driver shutting down|OS call failed"
        r"|the launch timed out and was terminated|CUDA driver is a stub library|named symbol not found)"
        r"|CUDA driver initialization failed",
        en="The CUDA driver failed[[ ({words})]] and does not say why: a GPU that fell off the bus, a driver that was "
        "updated under a running system, a container without full access to the GPUs, or a display that shares the "
        "GPU. Look at nvidia-smi and dmesg (Xid); after an update, reboot.",
        zh="CUDA 驱动出错[[（{words}）]]，没有说明原因：GPU 掉线、系统运行时更新了驱动、容器没有 GPU 的完整访问权限，"
        "或 GPU 同时用于显示。请查看 nvidia-smi 和 dmesg（Xid）；更新之后请重启。",
    ),
    signature(
        "gpu-links",
        r"peer access is not supported between these two devices|peer mapping resources exhausted",
        en="Two GPUs of this machine cannot read each other's memory directly, and something asks for it. Set "
        "NCCL_P2P_DISABLE=1, and use one process per GPU." + _NOT_YOURS_EN,
        zh="本机的两个 GPU 不能直接访问彼此的显存，而程序要求这样做。请设置 NCCL_P2P_DISABLE=1，"
        "并为每个 GPU 使用一个进程。" + _NOT_YOURS_ZH,
    ),
    signature(
        "cuda-call-refused",
        r"\A(?:\w+\.)*\w*Error: (?:CUDA|HIP) error: (?P<words>operation not supported|invalid argument"
        r"|invalid resource handle|invalid configuration argument|operation not permitted[^\n]*|invalid value)",
        raised_only=True,
        en="The CUDA runtime refused a call ({words}). The message comes late, so the line may be a later one: run "
        "with CUDA_LAUNCH_BLOCKING=1. Where nothing in the line explains it, suspect an empty or a huge tensor, an "
        "extension built for another CUDA, a GPU that is shared in a virtual machine or MIG, and code under a CUDA "
        "graph.",
        zh="CUDA 运行时拒绝了某个调用（{words}）。此消息会延迟出现，所示行可能偏后：请用 CUDA_LAUNCH_BLOCKING=1 "
        "重新运行。若该行无法解释，请检查空张量或巨大的张量、为其他 CUDA 版本构建的扩展、虚拟机或 MIG 中共享的 GPU，"
        "以及 CUDA graph 中的代码。",
    ),
    signature(
        "gpu-architecture",
        # bitsandbytes 0.35 to 0.48, csrc/ops.cu and ops.hip: its own check prints this and ends the process.
        r"^Error (?P<what>invalid device function|no kernel image is available[^\n]*?) at line (?P<line>\d+) in file "
        r"(?P<file>\S+\.(?:cu|hip))",
        en="bitsandbytes has no kernel for this GPU ({what}, {file}:{line}), and ended the process: install or build "
        "it for this GPU's architecture, or do without it (another optimizer, no quantisation).",
        zh="bitsandbytes 没有适用于此 GPU 的 kernel（{what}，{file}:{line}），并终止了进程：请为该 GPU "
        "的架构安装或构建它，或不使用它（换用其他优化器，不做量化）。",
    ),
    signature(
        "cuda-error",
        r"^Error (?P<what>[a-z][\w -]+) at line (?P<line>\d+) in file (?P<file>\S+\.(?:cu|hip))\s*$",
        en="Compiled GPU code met an error ({what}, {file}:{line}) and ended the process without a Python traceback.",
        zh="编译的 GPU 代码遇到错误（{what}，{file}:{line}），未打印 Python traceback 就终止了进程。",
    ),
    signature(
        "gpu-hardware",
        # nvidia-smi and NVML.
        r"Unable to determine the device handle for GPU\s?(?P<bus>[\w:.]+): (?P<why>[^\n]+)",
        en="The driver lost the GPU {bus} ({why}): it fell off the bus or hangs. Restart the machine or take another "
        "one, and look for Xid in its kernel's log.",
        zh="驱动失去了 GPU {bus}（{why}）：它已掉线或挂起。请重启该机器或换用其他机器，并在其内核日志中查找 Xid。",
    ),
    signature(
        "driver-too-old",
        r"^Failed to initialize NVML: Driver/library version mismatch",
        en="The driver's libraries were updated while its kernel module is the old one: restart the machine (or reload "
        "the module). CUDA does not work there until then.",
        zh="驱动的库已更新，而内核模块仍是旧版：请重启该机器（或重新加载模块）。在此之前那里无法使用 CUDA。",
    ),
    signature(
        "no-cuda",
        r"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
        en="There is no working NVIDIA driver on that machine, or this is a login node without a GPU.",
        zh="该机器上没有可用的 NVIDIA 驱动，或这是没有 GPU 的登录节点。",
    ),
    signature(
        "host-out-of-memory",
        r"^terminate called after throwing an instance of 'std::bad_alloc'",
        en="Compiled code could not get memory of the machine (std::bad_alloc), and the process was aborted. Load less "
        "at once, use fewer processes or DataLoader workers, or ask for more memory.",
        zh="编译代码无法分配主机内存（std::bad_alloc），进程被中止。请减少一次加载的数据、减少进程或 DataLoader "
        "worker 数，或申请更多内存。",
    ),
    signature(
        "cuda-library-error",
        # torch 1.x to 2.13, aten/src/ATen/cudnn.
        r"cuDNN version incompatibility: PyTorch was compiled\s+against \((?P<built>[\d, ]+)\) but found runtime "
        r"version \((?P<found>[\d, ]+)\)",
        raised_only=True,
        en="torch was built for cuDNN {built} and loads {found}: another cuDNN comes first (LD_LIBRARY_PATH, a "
        "module, a conda package). Take it out of the path; torch brings its own.",
        zh="torch 为 cuDNN {built} 构建，而加载的是 {found}：其他 cuDNN 优先（LD_LIBRARY_PATH、module 或 conda 包）。"
        "请把它移出路径；torch 自带 cuDNN。",
    ),
    signature(
        "gpu-architecture",
        # torch 2.0 to 2.2, aten/src/ATen/native/transformers/cuda/flash_attn.
        r"Expected is_sm80 \|\| is_sm90 to be true, but got false",
        raised_only=True,
        en="FlashAttention's backward pass for heads this wide needs an A100 or H100: choose another kernel "
        "(torch.backends.cuda.enable_flash_sdp(False)), narrower heads, or a newer torch.",
        zh="如此宽的注意力头的 FlashAttention 反向传播需要 A100 或 H100：请换用其他 kernel"
        "（torch.backends.cuda.enable_flash_sdp(False)）、更窄的头，或更新的 torch。",
    ),
    signature(
        "cuda-error",
        r"\A(?:\w+\.)*\w*Error: (?:CUDA|HIP) (?:driver )?error: (?P<words>an illegal instruction was encountered"
        r"|mapping of buffer object failed|unknown error|invalid argument|invalid program counter[^\n]*"
        r"|an exception occurred[^\n]*|context is destroyed)",
        raised_only=True,
        en="The GPU or its driver reported an error ({words}). The message comes late, so the line may be a later one: "
        "run with CUDA_LAUNCH_BLOCKING=1, and look for Xid in the kernel's log of that machine.",
        zh="GPU 或其驱动报告了错误（{words}）。此消息会延迟出现，所示行可能偏后：请用 CUDA_LAUNCH_BLOCKING=1 重新运行，"
        "并在该机器的内核日志中查找 Xid。",
    ),
)
