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
        "started-without-launcher",
        r"environment variable (?P<name>RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|LOCAL_RANK) expected, but not set"
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
        r"EADDRINUSE|[Aa]ddress already in use",
        en="The port is taken, often by an earlier run. Do not fix MASTER_PORT in the script; let the launcher "
        "choose a free one.",
        zh="端口已被占用，通常来自之前的运行。不要在脚本中写死 MASTER_PORT，让启动器选择空闲端口。",
    ),
    signature(
        "rendezvous-failed",
        r"gaierror: .*(?:Name or service|Temporary failure)|\(gai error: ",
        en="A host name does not resolve on this machine, perhaps its own. Add it to /etc/hosts, or use an address.",
        zh="本机无法解析某个主机名，可能是本机自己的主机名。请把它加入 /etc/hosts，或改用地址。",
    ),
    signature(
        "rendezvous-failed",
        r"connectFullMesh failed|The client socket has (?:timed out|failed)|Rendezvous\w+Error",
        secondary=True,
        en="The ranks do not reach each other: a rank ended before they met, or the address or port is wrong.",
        zh="各 rank 无法互相连接：某个 rank 在建立连接之前就已结束，或地址、端口有误。",
    ),
    signature(
        "launcher-misused",
        r"You need to use at least 2 processes to use `--multi_gpu`|launch\.py: error: |accelerate.*: error: argument",
        en="accelerate launch refuses its arguments or its configuration file.",
        zh="accelerate launch 拒绝了其参数或配置文件。",
    ),
)
