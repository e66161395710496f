"""The machine a rank ran on: memory, shared memory, disks, signals, broken GPUs."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

_EVERY_RANK_EN = (
    "Every rank, and each of its DataLoader workers, holds its own copy of what it loads: load lazily or with memory "
    "mapping, use fewer workers, or ask for more memory."
)
_EVERY_RANK_ZH = (
    "每个 rank 及其每个 DataLoader worker 都持有各自的一份数据："
    "请惰性加载或使用内存映射，减少 worker 数，或申请更多内存。"
)
_SHM_EN = (
    "What is full is the memory file system /dev/shm, through which processes hand data to one another, and not the "
    "disk. Enlarge it (docker run --shm-size=16g, an emptyDir of medium Memory in Kubernetes), delete what earlier "
    "runs left there, or let the library use pipes or files (pandarallel: use_memory_fs=False)."
)
_SHM_ZH = (
    "已满的是进程之间传递数据所用的内存文件系统 /dev/shm，而不是磁盘。请增大它（docker run --shm-size=16g，Kubernetes "
    "中使用 medium 为 Memory 的 emptyDir），删除之前的运行遗留的文件，或让该库改用管道或文件"
    "（pandarallel：use_memory_fs=False）。"
)

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "host-out-of-memory",
        # Linux, mm/oom_kill.c: "Out of memory: Killed process 7 (python) total-vm:…kB, anon-rss:…kB"; with a cgroup's
        # limit "Memory cgroup out of memory: …".
        r"(?P<whose>Memory cgroup out of memory|Out of memory): Kill(?:ed)? process (?P<pid>\d+) \((?P<name>[^)]*)\)"
        r"(?:.*?anon-rss:(?P<size>\d+)kB)?",
        en="The kernel killed process {pid} ({name}[[, {size} kB in memory]]): the machine or the job's memory limit "
        "was "
        "full. This is memory of the machine, not of the GPU. " + _EVERY_RANK_EN,
        zh="内核终止了进程 {pid}（{name}[[，占用内存 {size} kB]]）：机器内存或作业的内存上限已满。这是主机内存，"
        "不是显存。" + _EVERY_RANK_ZH,
    ),
    signature(
        "host-out-of-memory",
        # Kubernetes' container status; the kubelet's exit code for it is 137.
        r"\bOOMKilled\b",
        en="Kubernetes killed the container because it reached its memory limit (OOMKilled). This is memory of the "
        "machine, not of the GPU. " + _EVERY_RANK_EN,
        zh="容器达到内存上限，被 Kubernetes 终止（OOMKilled）。这是主机内存，不是显存。"
        + _EVERY_RANK_ZH,
    ),
    signature(
        "host-out-of-memory",
        # Ray 2.x, ray.exceptions.OutOfMemoryError and the raylet's log.
        r"Task was killed due to the node running low on memory"
        r"|Workers? \(tasks / actors\) killed due to memory pressure \(OOM\)",
        en="Ray killed a worker because its machine was running out of memory. This is memory of the machine, not of "
        "the GPU. " + _EVERY_RANK_EN,
        zh="所在机器内存将尽，Ray 终止了 worker。这是主机内存，不是显存。" + _EVERY_RANK_ZH,
    ),
    signature(
        "host-out-of-memory",
        # The same allocator, asked for gigabytes at once: that is a size gone wrong more often than a machine
        # that is too small, and how many ranks there are does not matter.
        r"DefaultCPUAllocator: can't allocate memory: you tried to allocate (?P<asked>\d{10,}) bytes",
        en="One allocation asked for {asked} bytes of the machine's memory (not the GPU's). Check the size of what is "
        "made here first: a dense matrix over all items, attention over a very long sequence, or a wrong dimension "
        "asks "
        "for this much.",
        zh="单次分配请求了 {asked} 字节的主机内存（不是显存）。请先检查此处所创建对象的大小："
        "对所有元素建立的稠密矩阵、很长序列上的注意力或错误的维度会请求这么多内存。",
    ),
    signature(
        "host-out-of-memory",
        # torch c10/core/impl/alloc_cpu.cpp; CPython's MemoryError; numpy's _ArrayMemoryError.
        r"DefaultCPUAllocator: can't allocate memory(?:: you tried to allocate (?P<asked>\d+) bytes)?"
        r"|\A(?:\w+\.)*_?(?:Array)?MemoryError\b|OSError: \[Errno 12\] Cannot allocate memory",
        en="The machine ran out of memory (not the GPU)[[: {asked} bytes were asked for]]. "
        + _EVERY_RANK_EN,
        zh="机器内存不足（不是显存）[[：请求了 {asked} 字节]]。" + _EVERY_RANK_ZH,
    ),
    signature(
        "disk-full",
        r"No space left on device: b?['\"]?/dev/shm/|/dev/shm/\S*: No space left on device",
        en=_SHM_EN,
        zh=_SHM_ZH,
    ),
    signature(
        "disk-full",
        r"No space left on device",
        # pandarallel puts what it hands to its workers below /dev/shm (nalepae/pandarallel#143, #221, #277); Python's
        # semaphores are files there (glibc's sem_open).
        frames=r"/pandarallel/|/multiprocessing/synchronize\.py",
        en=_SHM_EN,
        zh=_SHM_ZH,
    ),
    signature(
        "disk-full",
        r"No space left on device",
        en="The disk that is written to here is full. Free space there, or write elsewhere; look at TMPDIR and the "
        "caches, too (HF_HOME, the compiler's caches).",
        zh="此处写入的磁盘已满。请在该处释放空间，或写到别处；也请检查 TMPDIR 和各种缓存（HF_HOME、编译缓存）。",
    ),
    signature(
        "disk-full",
        r"\[Errno 122\] Disk quota exceeded",
        en="Your quota on this file system is used up; the disk itself need not be full. Delete old checkpoints, or "
        "write elsewhere.",
        zh="你在该文件系统上的配额已用尽；磁盘本身未必已满。请删除旧检查点，或写到别处。",
    ),
    signature(
        "write-failed",
        # torch caffe2/serialize/inline_container.cc and aten's THDiskFile: no error number is given.
        r"PytorchStreamWriter failed writing (?:file|central directory)|write\(\): fd \d+ failed with (?P<why>[\w /]+)"
        r"|inline_container\.cc.*unexpected pos \d+ vs \d+",
        en="A file could not be written[[ ({why})]]: most often a full disk or a used-up quota, sometimes a network "
        "file "
        "system that went away. Check the file system of the file that is saved here.",
        zh="文件写入失败[[（{why}）]]：多半是磁盘已满或配额用尽，有时是网络文件系统掉线。"
        "请检查此处保存文件所在的文件系统。",
    ),
    signature(
        "killed",
        # torch.distributed.elastic's summary; DeepSpeed's launcher; Slurm's srun; the shell.
        r"Signal 9 \(SIGKILL\) received by PID (?P<pid>\d+)|exits with return code = -9"
        r"|failed \(exitcode: -9\)|died with <Signals\.SIGKILL: 9>|^\S*: line \d+: +(?P<process>\d+) Killed\b"
        r"|^Killed\s*$",
        en="A rank was killed by SIGKILL[[ (process {pid})]][[ (process {process})]] without a chance to say why. "
        "Most often the machine ran out of "
        "memory; only the kernel's log (dmesg), the job's cgroup (memory.events) or the scheduler can confirm that.",
        zh="某个 rank 被 SIGKILL 强制终止[[（进程 {pid}）]][[（进程 {process}）]]，来不及说明原因。"
        "多半是机器内存不足；只有内核日志（dmesg）、"
        "作业的 cgroup（memory.events）或调度器才能确认。",
    ),
    signature(
        "killed",
        # 128 + 9: how shells, containers and Slurm write the end by SIGKILL.
        r"(?:exited with|terminated with|Exited with|with) exit (?:code|status) 137\b|^\s*Exit Code:\s+137\s*$",
        en="A process was killed by SIGKILL (exit code 137) without a chance to say why. Most often the machine or the "
        "container ran out of memory; only the kernel's log (dmesg), the cgroup (memory.events), `kubectl describe "
        "pod` or "
        "the scheduler can confirm that.",
        zh="某个进程被 SIGKILL 强制终止（退出码 137），来不及说明原因。多半是机器或容器内存不足；只有内核日志"
        "（dmesg）、"
        "cgroup（memory.events）、`kubectl describe pod` 或调度器才能确认。",
    ),
    signature(
        "killed",
        r"^srun: error: (?P<node>\S+): tasks? (?P<tasks>[\d,-]+): Killed\s*$",
        secondary=True,
        en="On node {node} the scheduler saw tasks {tasks} killed: because another task failed first (srun "
        "--kill-on-bad-exit), or because the machine ran out of memory; the kernel's log or the scheduler's accounting "
        "can confirm that.",
        zh="调度器看到节点 {node} 上的任务 {tasks} 被强制终止：因为另一个任务先失败（srun --kill-on-bad-exit），"
        "或因为机器内存不足；"
        "内核日志或调度器的记账可以确认。",
    ),
    signature(
        "fatal-signal",
        # CPython's faulthandler (PYTHONFAULTHANDLER=1).
        r"^Fatal Python error: (?P<words>Segmentation fault|Bus error|Aborted|Floating point exception"
        r"|Illegal instruction)",
        en="Compiled code crashed ({words}), and the stack below it is the Python code that called it. Suspect "
        "packages "
        "built for another version of torch.",
        zh="编译代码崩溃（{words}），其下的调用栈是调用它的 Python 代码。请检查为其他版本 torch 构建的包。",
    ),
    signature(
        "fatal-signal",
        r"Signal 7 \((?P<name>SIGBUS)\) received by PID (?P<pid>\d+)|failed \(exitcode: -7\)",
        name="SIGBUS",
        en="{name} ended a rank[[ (process {pid})]]: memory could not be provided, most often because /dev/shm, the "
        "shared "
        "memory, is full. Enlarge it (docker run --shm-size) or use fewer DataLoader workers.",
        zh="{name} 终止了某个 rank[[（进程 {pid}）]]：无法提供内存，多半是共享内存 /dev/shm 已满。请增大它"
        "（docker run --shm-size），或减少 DataLoader worker 数。",
    ),
    signature(
        "fatal-signal",
        r"Signal (?:4|6|8|11) \((?P<name>SIG\w+)\) received by PID (?P<pid>\d+)"
        r"|^srun: error: \S+: tasks? [\d,-]+: (?P<words>Segmentation fault|Aborted|Bus error|Illegal instruction)"
        r"|^(?:\S*: line \d+: +\d+ )?(?P<shell>Segmentation fault|Aborted|Bus error) +\(core dumped\)",
        name="A signal",
        en="{name} ended a rank inside compiled code[[ (process {pid})]][[ ({words})]][[ ({shell})]]. Its last lines "
        "on "
        "standard error may say why; run again with PYTHONFAULTHANDLER=1 to see the Python line.",
        zh="某个 rank 在编译代码中被 {name} 终止[[（进程 {pid}）]][[（{words}）]][[（{shell}）]]。"
        "其标准错误的最后几行可能说明原因；"
        "用 PYTHONFAULTHANDLER=1 重新运行可看到 Python 行。",
    ),
    signature(
        "too-many-processes",
        # EAGAIN of pthread_create and fork; CPython's threading, libgomp, OpenBLAS.
        r"\A(?:RuntimeError|OSError|BlockingIOError|ImportError): (?:\[Errno 11\] )?Resource temporarily unavailable"
        r"|RuntimeError: can't start new thread|libgomp: Thread creation failed: Resource temporarily unavailable"
        r"|pthread_create failed for thread \d+ of \d+: Resource temporarily unavailable",
        en="The system gave no more threads or processes: every rank starts many (OpenMP, autograd, DataLoader "
        "workers, "
        "tokenizers), and a limit is reached. Set OMP_NUM_THREADS=1, use fewer workers, or raise ulimit -u (in "
        "containers the pids limit).",
        zh="系统不再提供线程或进程：每个 rank 都会启动许多（OpenMP、autograd、DataLoader worker、tokenizers），"
        "已达到上限。"
        "请设置 OMP_NUM_THREADS=1，减少 worker 数，或提高 ulimit -u（容器中为 pids 限制）。",
    ),
    signature(
        "too-many-open-files",
        r"\[Errno 24\] Too many open files|Too many open files\. Communication with the workers is no longer possible",
        en="The process has too many files open (torch shares every tensor of a DataLoader worker through one). Raise "
        "the limit (ulimit -n), or call torch.multiprocessing.set_sharing_strategy('file_system').",
        zh="进程打开的文件过多（torch 通过文件描述符共享 DataLoader worker 的每个张量）。请提高上限（ulimit -n），"
        "或调用 "
        "torch.multiprocessing.set_sharing_strategy('file_system')。",
    ),
    signature(
        "file-race",
        r"\AFileExistsError: ",
        raised_only=True,
        en="A file or folder exists already. Ranks that create the same one at the same time meet this: use "
        "exist_ok=True, or let one rank create it (main_process_first).",
        zh="文件或文件夹已存在。多个 rank 同时创建同一个文件夹时会这样：请使用 exist_ok=True，或只由一个 rank 创建"
        "（main_process_first）。",
    ),
    signature(
        "file-system-error",
        r"\[Errno (?:116|5|107|121)\] (?P<what>Stale file handle|Input/output error|Transport endpoint is not connected"
        r"|Remote I/O error)",
        raised_only=True,
        en="The file system failed ({what}): a network file system went away for a moment, or a disk is broken. Your "
        "code is not the cause; copy the data to a local disk, or try again.",
        zh="文件系统出错（{what}）：网络文件系统短暂不可用，或磁盘损坏。与你的代码无关；请把数据复制到本地磁盘，"
        "或重试。",
    ),
    signature(
        "host-out-of-memory",
        r"unable to mmap \d+ bytes from file <(?P<file>[^>]*)>: Cannot allocate memory",
        raised_only=True,
        en="No more memory could be mapped[[ for {file}]]: the machine's memory or the process's limit (ulimit -v, "
        "vm.max_map_count, vm.overcommit_memory) is used up.",
        zh="无法再映射内存[[（{file}）]]：机器内存或进程上限（ulimit -v、vm.max_map_count、"
        "vm.overcommit_memory）已用尽。",
    ),
)
