"""DataLoader workers that died (torch 2.13.0: ``torch/utils/data/dataloader.py``, ``torch/csrc/DataLoader.cpp``)."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

_ENDED_BY = (
    r"\b(?:[Ww]orker|[Pp]rocess|[Aa]ctor|[Cc]hild|[Ss]ubprocess)\b[^\n]{0,80}?"
    r"\b(?:exit ?code|exit status|return ?code|status)[ :=]{1,3}-"
)
"""A program's own words on a process that it started; Python gives the signal that ended it as a negative status."""

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "shared-memory",
        r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: Bus error"
        r"|Unexpected bus error encountered in worker|unable to (?:open|resize|allocate|mmap) shared memory"
        r"|out of shared memory",
        en="A DataLoader worker[[ (process {pid})]] ran out of shared memory: /dev/shm is full. Enlarge it (docker run "
        "--shm-size=16g, an emptyDir of medium Memory in Kubernetes), or use fewer workers.",
        zh="DataLoader worker[[（进程 {pid}）]]的共享内存不足：/dev/shm 已满。请增大它（docker run --shm-size=16g，"
        "Kubernetes "
        "中使用 medium 为 Memory 的 emptyDir），或减少 worker 数。",
    ),
    signature(
        "worker-killed",
        r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: Killed",
        en="A DataLoader worker (process {pid}) was killed, most often because the machine ran out of memory. Use "
        "fewer "
        "workers, and load lazily: every worker of every rank holds its own copy of the data.",
        zh="DataLoader worker（进程 {pid}）被强制终止，多半是机器内存不足。请减少 worker 数并惰性加载："
        "每个 rank 的每个 worker 都持有各自的一份数据。",
    ),
    signature(
        "worker-killed",
        r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: (?P<signal>[\w ]+)",
        en="A DataLoader worker (process {pid}) was ended by a signal ({signal}): compiled code of the dataset or a "
        "decoder crashed. Run with num_workers=0 to see where.",
        zh="DataLoader worker（进程 {pid}）被信号终止（{signal}）：数据集或解码器的编译代码崩溃。请用 num_workers=0 "
        "运行以查看位置。",
    ),
    signature(
        "worker-died",
        r"DataLoader worker \(pid(?:\(s\))? (?P<pids>[\d, ]+)\) exited unexpectedly",
        en="DataLoader workers (processes {pids}) ended without saying why: killed for memory, crashed in compiled "
        "code, "
        "or the script has no main guard. Run with num_workers=0: the error then appears in the rank itself.",
        zh="DataLoader worker（进程 {pids}）未说明原因就结束了：因内存被终止、编译代码崩溃，或脚本没有 main 保护。"
        "请用 num_workers=0 运行，错误会出现在该 rank 自身。",
    ),
    signature(
        "worker-killed",
        _ENDED_BY + r"9\b",
        raised_only=True,
        en="A process that the program had started was killed (SIGKILL), most often because the machine ran out of "
        "memory. The line shown is where that was noticed.",
        zh="程序启动的一个进程被强制终止（SIGKILL），多半是机器内存不足。所示行是发现此事之处。",
    ),
    signature(
        "worker-killed",
        _ENDED_BY + r"(?P<number>6|7|11)\b",
        raised_only=True,
        en="Compiled code crashed in a process that the program had started (signal {number}). The line shown is where "
        "that was noticed; PYTHONFAULTHANDLER=1 prints the line that crashed.",
        zh="程序启动的一个进程中的编译代码崩溃（信号 {number}）。所示行是发现此事之处；设置 PYTHONFAULTHANDLER=1 "
        "可打印崩溃的行。",
    ),
    signature(
        "worker-timeout",
        r"DataLoader timed out after (?P<seconds>\d+) seconds",
        en="No DataLoader worker delivered a batch within {seconds} s: a slow file system, a deadlock after fork, or "
        "too "
        "short a timeout.",
        zh="{seconds} 秒内没有 DataLoader worker 交付批次：文件系统过慢、fork 之后死锁，或超时设置过短。",
    ),
    signature(
        "too-many-open-files",
        # Lib/multiprocessing/reduction.py: the other side could not take one more file descriptor.
        r"received 0 items of ancdata",
        raised_only=True,
        en="The process has too many files open (torch shares every tensor of a DataLoader worker through one). Raise "
        "the limit (ulimit -n), or call torch.multiprocessing.set_sharing_strategy('file_system').",
        zh="进程打开的文件过多（torch 通过文件描述符共享 DataLoader worker 的每个张量）。请提高上限（ulimit -n），"
        "或调用 torch.multiprocessing.set_sharing_strategy('file_system')。",
    ),
    signature(
        "worker-died",
        r"One of the subprocesses has abruptly died during map operation"
        r"|BrokenProcessPool: A process in the process pool was terminated abruptly",
        raised_only=True,
        en="A process of the pool ended without an exception: killed, most often because the machine ran out of "
        "memory, or crashed in compiled code. Use fewer processes (each rank starts its own pool), and try with one "
        "to see an error.",
        zh="进程池中的一个进程没有抛出异常就结束了：多半是机器内存不足而被终止，或编译代码崩溃。请减少进程数"
        "（每个 rank 都会启动自己的进程池），并用单个进程运行以查看错误。",
    ),
)
