"""How processes are started, and how they find each other."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "duplicate-gpu",
        r"Duplicate GPU detected ?: rank (?P<one>\d+) and rank (?P<two>\d+)",
        en="Ranks {one} and {two} are on the same GPU. Call torch.cuda.set_device(int(os.environ"
        '["LOCAL_RANK"])) before the first collective, and start no more processes than GPUs.',
        zh="rank {one} 和 rank {two} 在同一个 GPU 上。请在第一个集合通信之前调用 torch.cuda.set_device(int("
        'os.environ["LOCAL_RANK"]))，且进程数不要超过 GPU 数。',
    ),
    signature(
        "local-rank-argument",
        r"unrecognized arguments: --local[-_]rank",
        en="The script's argument parser does not know --local-rank (torch.distributed.launch passes it since "
        "torch 2.0). Read LOCAL_RANK from the environment and start with torchrun, or accept both spellings.",
        zh="脚本的参数解析器不认识 --local-rank（自 torch 2.0 起由 torch.distributed.launch 传入）。请从环境变量 "
        "LOCAL_RANK 读取并用 torchrun 启动，或同时接受两种写法。",
    ),
    signature(
        "process-group-not-initialized",
        r"Default process group has not been initialized",
        en="A collective or DistributedDataParallel was used before init_process_group. Call it first, or let "
        "Accelerator() / PartialState() do it.",
        zh="在 init_process_group 之前使用了集合通信或 DistributedDataParallel。请先调用它，或由 Accelerator() / "
        "PartialState() 完成。",
    ),
    signature(
        "process-group-not-initialized",
        # Megatron-LM, megatron/core/parallel_state.py (megatron/mpu/initialize.py in old versions).
        r"\AAssertionError: (?P<group>(?:[\w-]+ ){0,5}parallel) group is not initialized",
        raised_only=True,
        en="Megatron's {group} group does not exist in this process: initialize_model_parallel has not run before this "
        "line, or it ran in another copy of megatron that was imported under another name or path.",
        zh="此进程中不存在 Megatron 的 {group} 组：在该行之前没有运行 initialize_model_parallel，"
        "或者它运行在以其他名称或路径导入的另一份 megatron 中。",
    ),
    signature(
        "process-group-not-initialized",
        # torch 1.x to 2.13, distributed_c10d.py, destroy_process_group.
        r"Invalid process group specified",
        secondary=True,
        en="destroy_process_group was called where no group is left, or never was one. It is a mistake in the "
        "clean-up: if anything failed before, that is the cause.",
        zh="在没有（或从未有过）进程组时调用了 destroy_process_group。这是清理阶段的错误：若之前另有失败，那才是原因。",
    ),
    signature(
        "process-group-initialized-twice",
        r"trying to initialize the default process group twice",
        en="init_process_group was called a second time: by the script and by a library (Accelerator, Lightning, "
        "deepspeed.init_distributed), or by two runs in one process. Call it once, or ask dist.is_initialized() "
        "first.",
        zh="init_process_group 被第二次调用：脚本和某个库（Accelerator、Lightning、"
        "deepspeed.init_distributed）各调用一次，"
        "或在一个进程中运行了两次。请只调用一次，或先检查 dist.is_initialized()。",
    ),
    signature(
        "no-libuv",
        # torch 2.4 to 2.9 for Windows, torch/csrc/distributed/c10d/TCPStore.cpp.
        r"use_libuv was requested but PyTorch was buil[dt] without libuv support",
        en="torch for Windows has no libuv, which the store of the process group uses by default. Set USE_LIBUV=0 in "
        "the environment of the launcher; where that does not reach it, start without a launcher on one GPU, or use "
        "WSL. NCCL is not available on Windows either: the backend must be gloo.",
        zh="Windows 版 torch 不含 libuv，而进程组的存储默认使用它。请在启动器的环境中设置 USE_LIBUV=0；若不起作用，"
        "请不用启动器在单个 GPU 上运行，或使用 WSL。Windows 上也没有 NCCL：后端须为 gloo。",
    ),
    signature(
        "rendezvous-failed",
        # torch 1.8 to 2.13, torch/distributed/distributed_c10d.py, _store_based_barrier.
        r"Timed out initializing process group in store based barrier on rank:? (?P<rank>\d+), for key: \S+ "
        r"\(world_size=(?P<world>\d+), (?:num_workers_joined|worker_count)=(?P<came>\d+)",
        en="init_process_group waited in vain: {came} processes came, and the group is to have {world}. If fewer came, "
        "the missing ones failed before or were not started; if more, several processes took the same rank, or an "
        "earlier run still uses the same port or file.",
        zh="init_process_group 等待超时：到达了 {came} 个进程，而该组应有 {world} 个。若到达的较少，缺少的进程已先失败"
        "或没有启动；若较多，则有多个进程使用了同一 rank，或之前的运行仍在使用同一端口或文件。",
    ),
    signature(
        "rendezvous-failed",
        # torch 2.1 to 2.13, torch/csrc/distributed/c10d/TCPStore.cpp.
        r"Timed out after (?P<limit>\d+) seconds waiting for clients\. (?P<came>\d+)/(?P<world>\d+) clients joined",
        en="Rank 0 waited {limit} s, and {came} of {world} processes came. The others were not started, failed before, "
        "or do not reach rank 0's machine (address, port, firewall). Under Slurm, compare the number of tasks with "
        "what the script starts.",
        zh="rank 0 等待了 {limit} 秒，{world} 个进程中只有 {came} 个到达。其余进程没有启动、已先失败，"
        "或无法到达 rank 0 所在的机器（地址、端口、防火墙）。在 Slurm 下请核对任务数与脚本启动的进程数。",
    ),
    signature(
        "started-without-launcher",
        r"environment variable (?P<name>RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|LOCAL_RANK) expected, but not set"
        r"|Could not find '(?P<missing>LOCAL_RANK|RANK|WORLD_SIZE|MASTER_ADDR)' in the torch environment"
        r"|KeyError: '(?P<key>LOCAL_RANK|RANK|WORLD_SIZE|MASTER_ADDR)'",
        en="The script expects a launcher's environment variables. Start it with torchrun or accelerate launch.",
        zh="脚本需要启动器设置的环境变量。请用 torchrun 或 accelerate launch 启动。",
    ),
    signature(
        "fork-after-cuda",
        r"Cannot re-initialize CUDA in forked subprocess|before the .notebook_launcher. could create a forked"
        r"|CUDA has been initialized before the .notebook_launcher",
        en="CUDA was used before the process forked (DataLoader worker, notebook_launcher, datasets.map). Touch "
        "CUDA only after the fork, or use the spawn start method.",
        zh="进程在 fork 之前已使用了 CUDA（DataLoader worker、notebook_launcher、datasets.map）。请在 fork 之后再使用 "
        "CUDA，或使用 spawn 启动方式。",
    ),
    signature(
        "accelerator-before-launcher",
        r"the `?Accelerator`? should only be initialized inside your training function",
        en="Create the Accelerator inside the function given to notebook_launcher.",
        zh="请在传给 notebook_launcher 的函数内部创建 Accelerator。",
    ),
    signature(
        "spawn-without-main-guard",
        r"finished its bootstrapping phase",
        en='Processes are started while the module is imported. Put the start under if __name__ == "__main__":.',
        zh='模块导入时就启动了进程。请把启动代码放到 if __name__ == "__main__": 之下。',
    ),
    signature(
        "port-in-use",
        # torch 1.x: "failed to bind to [::]:29500 (errno: 98 - …)"; 2.x: "port: 29500, useIpv6: 0, code: -98, …".
        r"failed to bind to \S*?:(?P<port>\d+) \(errno: 98|port: (?P<number>\d+), .*?EADDRINUSE",
        en="Port[[ {port}]][[ {number}]] is taken, often by an earlier or another run on this machine: end that one, "
        "or take another port (accelerate launch --main_process_port 0, torchrun --standalone or --master_port; where "
        "the script starts its ranks itself, the MASTER_PORT or the tcp:// address that it sets).",
        zh="端口[[ {port}]][[ {number}]] 已被占用，通常是本机上之前的或其他的运行：请结束它，或换用其他端口"
        "（accelerate launch --main_process_port 0，torchrun --standalone 或 --master_port；若脚本自行启动各 rank，"
        "则为其设置的 MASTER_PORT 或 tcp:// 地址）。",
    ),
    signature(
        "port-in-use",
        r"EADDRINUSE|[Aa]ddress already in use"
        r"|Tried to launch distributed communication on port `(?P<port>\d+)`, but another process",
        en="The port[[ {port}]] is taken, often by an earlier run. Do not fix MASTER_PORT in the script; let the "
        "launcher "
        "choose a free one (--main_process_port 0).",
        zh="端口[[ {port}]] 已被占用，通常来自之前的运行。不要在脚本中写死 MASTER_PORT，让启动器选择空闲端口"
        "（--main_process_port 0）。",
    ),
    signature(
        "terminated",
        # torch/distributed/elastic/agent/server/api.py; the number is the signal's.
        r"Received (?P<number>\d+|Signals\.\w+) death signal, shutting down workers"
        r"|SignalException: Process \d+ got signal: (?P<signal>\d+|Signals\.\w+)",
        secondary=True,
        en="The launcher was told to stop from outside[[ (signal {number})]][[ (signal {signal})]]: by a user, a "
        "scheduler "
        "or a time limit. No rank failed.",
        zh="启动器被外部要求停止[[（信号 {number}）]][[（信号 {signal}）]]：用户、调度器或时间限制所致。没有 rank "
        "失败。",
    ),
    signature(
        "terminated",
        # Lightning 2.x, lightning_fabric/utilities/exceptions.py.
        r"\A(?:\w+\.)*SIGTERMException\b",
        secondary=True,
        raised_only=True,
        en="The rank was told to stop from outside (SIGTERM): by a scheduler, a launcher whose other rank failed, "
        "or a "
        "user.",
        zh="该 rank 被外部要求停止（SIGTERM）：由调度器、另一个 rank 失败后的启动器，或用户发出。",
    ),
    signature(
        "terminated",
        r"\AKeyboardInterrupt\b",
        secondary=True,
        en="The run was interrupted from outside (Ctrl+C, SIGINT). The line is where it was at that moment.",
        zh="运行被外部中断（Ctrl+C、SIGINT）。所示行是中断时所在的位置。",
    ),
    signature(
        "terminated",
        # DeepSpeed 0.4 to 0.18, launcher/launch.py, sigkill_handler: not printed where a rank's exit was the reason.
        r"Main process received (?P<signal>SIGINT|SIGTERM), exiting",
        secondary=True,
        en="DeepSpeed's launcher was stopped from outside ({signal}) and ended its ranks: Ctrl+C, kill or a scheduler. "
        "No rank had failed by then.",
        zh="DeepSpeed 的启动器被外部停止（{signal}），并结束了各 rank：Ctrl+C、kill 或调度器。此前没有 rank 失败。",
    ),
    signature(
        "launcher-misused",
        r"You need to use at least 2 processes to use `--multi_gpu`|launch\.py: error: |accelerate.*: error: argument",
        en="accelerate launch refuses its arguments or its configuration file.",
        zh="accelerate launch 拒绝了其参数或配置文件。",
    ),
    signature(
        "deepspeed-settings",
        # DeepSpeed 0.3 to 0.18, deepspeed/__init__.py and runtime/engine.py.
        r"DeepSpeed requires --deepspeed_config to specify configuration file",
        raised_only=True,
        en="deepspeed.initialize got no configuration: pass --deepspeed_config FILE, or config=… in the call.",
        zh="deepspeed.initialize 没有得到配置：请传入 --deepspeed_config FILE，或在调用中使用 config=…。",
    ),
    signature(
        "too-few-gpus",
        # DeepSpeed 0.3 to 0.18, launcher/runner.py.
        r"\ARuntimeError: Unable to proceed, no GPU resources available",
        raised_only=True,
        en="DeepSpeed's launcher found no GPU on this machine and no host file: see nvidia-smi and "
        "CUDA_VISIBLE_DEVICES there.",
        zh="DeepSpeed 的启动器在本机没有找到 GPU，也没有 hostfile：请在那里检查 nvidia-smi 和 CUDA_VISIBLE_DEVICES。",
    ),
    signature(
        "user-error",
        r"^\S*python[\d.]*: can't open file '(?P<name>[^']+)': \[Errno 2\]",
        en="Python does not find the script {name}; relative paths start at the working directory.",
        zh="Python 找不到脚本 {name}；相对路径从工作目录算起。",
    ),
    signature(
        "script-arguments",
        r"^\S+: error: (?:unrecognized arguments|the following arguments are required|argument )(?P<message>.*)",
        en="The script refuses its command-line arguments. Set the arguments of the run.",
        zh="脚本拒绝了命令行参数。请设置运行参数。",
    ),
)
