"""The machine and the installation: memory, disks, drivers, binaries, credentials."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "shared-memory",
        r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:is killed by signal: Bus error|exited unexpectedly)"
        r"|out of shared memory|Unexpected bus error encountered in worker",
        en="DataLoader workers ran out of shared memory (/dev/shm). Enlarge it (docker run --shm-size), or use "
        "fewer workers.",
        zh="DataLoader worker 的共享内存（/dev/shm）不足。请增大共享内存（docker run --shm-size），或减少 worker 数。",
    ),
    signature(
        "worker-killed",
        r"DataLoader worker \(pid \d+\) is killed by signal: (?P<signal>\w+)",
        en="A DataLoader worker was killed ({signal}), most often because the machine ran out of memory.",
        zh="DataLoader worker 被终止（{signal}），多半是机器内存不足。",
    ),
    signature(
        "host-out-of-memory",
        r"oom[-_]kill event|task \d+: Out Of Memory|OOM Killed|Cannot allocate memory|DefaultCPUAllocator: can't "
        r"allocate memory|\AMemoryError",
        en="The machine ran out of memory (not the GPU). Every rank holds its own copy of data and model.",
        zh="机器内存不足（不是显存）。每个 rank 都持有自己的一份数据和模型。",
    ),
    signature(
        "disk-full",
        r"No space left on device|Disk quota exceeded|PytorchStreamWriter failed writing|write\(\): fd \d+ failed"
        r"|unexpected pos \d+ vs",
        en="A file could not be written: the disk or the quota is full.",
        zh="文件写入失败：磁盘或配额已满。",
    ),
    signature(
        "driver-too-old",
        r"NVIDIA driver on your system is too old|CUDA driver version is insufficient",
        en="The NVIDIA driver is older than this build of torch needs. Update the driver or install a torch "
        "built for an older CUDA.",
        zh="NVIDIA 驱动过旧，不满足此 torch 构建的要求。请更新驱动，或安装为旧版 CUDA 构建的 torch。",
    ),
    signature(
        "gpu-architecture",
        r"no kernel image is available|is not compatible with the current PyTorch installation",
        en="This build of torch has no kernels for this GPU. Install a build that supports it.",
        zh="此 torch 构建没有适用于该 GPU 的 kernel。请安装支持它的构建。",
    ),
    signature(
        "no-cuda",
        r"Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available"
        r"|PyTorch is not linked with support for cuda",
        en="The script asks for CUDA, and there is none here. On CPU ranks, take the device from the "
        "accelerator or from torch.cuda.is_available().",
        zh="脚本请求 CUDA，但此处没有。使用 CPU rank 时，请从 accelerator 或 torch.cuda.is_available() 决定设备。",
    ),
    signature(
        "no-nccl",
        r"ProcessGroupNCCL is only supported with GPUs|Distributed package doesn't have NCCL|"
        r"doesn't have NCCL built in",
        en='The script asks for the "nccl" backend, which needs CUDA devices. On CPU ranks use "gloo": '
        'backend="nccl" if torch.cuda.is_available() else "gloo".',
        zh="脚本请求“nccl”后端，它需要 CUDA 设备。CPU rank 请使用“gloo”："
        'backend="nccl" if torch.cuda.is_available() else "gloo"。',
    ),
    signature(
        "binary-mismatch",
        r"undefined symbol: |version `GLIBC\w*_[\d.]+' not found",
        en="A compiled package was built for another version of torch or of the system. Reinstall it for this "
        "environment. This has nothing to do with several GPUs.",
        zh="某个编译的包是为其他版本的 torch 或系统构建的。请在此环境中重新安装。这与多 GPU 无关。",
    ),
    signature(
        "missing-credentials",
        r"api_key not configured|[Gg]ated repo|GatedRepoError|401 Client Error|Invalid user token",
        en="A service needs a login or a token. This has nothing to do with several GPUs.",
        zh="某项服务需要登录或令牌。这与多 GPU 无关。",
    ),
    signature(
        "no-network",
        r"Couldn't connect to 'https?://|LocalEntryNotFoundError|Max retries exceeded with url|offline mode is enabled",
        en="A download failed: no network here, or the file is not in the cache.",
        zh="下载失败：此处没有网络，或文件不在缓存中。",
    ),
    signature(
        "file-race",
        r"FileExistsError: ",
        en="A file or folder exists already. Ranks that create the same one at the same time meet this: use "
        "exist_ok=True, or let one rank create it (main_process_first).",
        zh="文件或文件夹已存在。多个 rank 同时创建同一个文件夹时会这样：请使用 exist_ok=True，或只由一个 rank 创建"
        "（main_process_first）。",
    ),
    signature(
        "time-limit",
        r"DUE TO TIME LIMIT",
        en="The scheduler ended the job at its time limit.",
        zh="调度器因到达时间限制而结束了作业。",
    ),
    signature(
        "preempted",
        r"DUE TO (?:JOB REQUEUE|PREEMPTION)",
        en="The scheduler took the job's machines away (preemption); your code is not the cause.",
        zh="调度器抢占了作业的机器，与你的代码无关。",
    ),
    signature(
        "node-failure",
        r"Node failure on|DUE TO NODE FAILURE",
        en="A machine of the job failed; your code is not the cause.",
        zh="作业的一台机器发生故障，与你的代码无关。",
    ),
    signature(
        "killed",
        r"Signal 9 \(SIGKILL\) received by PID|exits with return code = -9",
        en="A rank was killed without a chance to say why. Usually the machine ran out of memory (look at the kernel's "
        "log), or somebody or a scheduler killed it.",
        zh="某个 rank 被强制终止，来不及说明原因。通常是机器内存不足（请查看内核日志），或被人或调度器终止。",
    ),
    signature(
        "fatal-signal",
        r"Signal (?:4|6|7|8|11) \((?P<name>SIG\w+)\) received by PID",
        en="{name} ended a rank inside compiled code; its last lines on standard error may say why.",
        zh="某个 rank 在编译代码中被 {name} 终止；其标准错误的最后几行可能说明原因。",
    ),
    signature(
        "missing-launcher",
        r"execve\(\): (?P<program>\S+): No such file",
        en="{program} is not on the job's PATH: start it as `python -m ...` with the environment's own Python.",
        zh="作业的 PATH 中没有 {program}：请用该环境自己的 Python 以 `python -m ...` 启动。",
    ),
    signature(
        "cancelled",
        r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT",
        en="The job was cancelled through the scheduler.",
        zh="作业已通过调度器取消。",
    ),
)
