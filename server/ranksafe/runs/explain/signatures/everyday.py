"""Errors of libraries around the training loop: files, locks, data bases, processes, metrics.

The words are those of CPython 3.11, torch 2.13.0, datasets 5.2.0, scikit-learn 1.9.1 and filelock 4.2.11.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

SIGNATURES: tuple[Signature, ...] = (
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
        "file-race",
        r"The file lock '(?P<file>[^']+)' could not be acquired",
        raised_only=True,
        en="Another process holds the lock {file}: another rank that takes long with the same cache, or one that "
        "ended without giving it back. If no process uses it any more, delete the file.",
        zh="另一个进程持有锁 {file}：其他 rank 长时间使用同一缓存，或某进程结束时没有释放。若已无进程使用，"
        "请删除该文件。",
    ),
    signature(
        "file-race",
        r"\A(?:\w+\.)*OperationalError: (?:\(sqlite3\.OperationalError\) )?database is locked",
        raised_only=True,
        en="Several processes write to one SQLite data base at the same time (a tracker's, a study's, a cache). Let "
        "one rank alone write, give each rank a file of its own, or use a data base server.",
        zh="多个进程同时写入同一个 SQLite 数据库（跟踪器、超参搜索或缓存）。请只让一个 rank 写入、"
        "为每个 rank 使用单独的文件，或改用数据库服务器。",
    ),
    signature(
        "file-system-error",
        r"\[Errno 30\] Read-only file system(?:: '(?P<file>[^']+)')?",
        raised_only=True,
        en="The file system[[ of {file}]] is mounted read-only here: write somewhere else (a container's volume, "
        "scratch), or look into the kernel's log where it was writable before.",
        zh="此处的文件系统[[（{file}）]]以只读方式挂载：请写入其他位置（容器卷、scratch）；若之前可写，"
        "请查看内核日志。",
    ),
    signature(
        "write-failed",
        r"\[Errno 27\] File too large",
        raised_only=True,
        en="The file grew beyond what this process may write (ulimit -f) or its file system takes.",
        zh="文件超出了该进程可写的大小（ulimit -f）或文件系统的上限。",
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
    signature(
        "host-out-of-memory",
        r"unable to mmap \d+ bytes from file <(?P<file>[^>]*)>: Cannot allocate memory",
        raised_only=True,
        en="No more memory could be mapped[[ for {file}]]: the machine's memory or the process's limit (ulimit -v, "
        "vm.max_map_count, vm.overcommit_memory) is used up.",
        zh="无法再映射内存[[（{file}）]]：机器内存或进程上限（ulimit -v、vm.max_map_count、"
        "vm.overcommit_memory）已用尽。",
    ),
    signature(
        "metric-of-one-class",
        r"Only one class (?:is )?present in y_true",
        raised_only=True,
        en="The metric was given samples of one class alone, for which it is not defined. Where each rank evaluates "
        "its own share, gather labels and scores of all ranks first.",
        zh="该指标只得到了同一类别的样本，因此没有定义。若各 rank 只评估自己的一份数据，请先汇集所有 rank "
        "的标签和分数。",
    ),
    signature(
        "not-finite",
        r"\AValueError: Input (?:X |y )?contains (?:NaN|infinity)",
        raised_only=True,
        en="A library that takes no NaN or infinity was given some: look where the values first go wrong (the loss, "
        "the learning rate, half precision, the data).",
        zh="某个不接受 NaN 或无穷大的库收到了这样的值：请找到数值最初出错的位置（损失、学习率、半精度、数据）。",
    ),
    signature(
        "group-rank",
        r"(?:Group|Global) rank (?P<rank>\d+) is not part of group",
        raised_only=True,
        en="Rank {rank} is not a member of the process group it is looked up in. A subgroup counts its own ranks from "
        "0; src and dst of its collectives are global ranks, unless group_src or group_dst is given.",
        zh="rank {rank} 不是所查询进程组的成员。子组内的 rank 从 0 开始编号；其集合通信的 src 和 dst 是全局 rank，"
        "除非使用 group_src 或 group_dst。",
    ),
    signature(
        "collective-dtype-mismatch",
        r"Invalid usage of tensors with different dtypes",
        raised_only=True,
        en="The tensors given to one collective have different types: convert them to one.",
        zh="传给同一个集合通信的张量类型不同：请转换为同一类型。",
    ),
    signature(
        "start-method",
        r"\ARuntimeError: context has already been set",
        raised_only=True,
        plain=True,
        en="multiprocessing's start method is set a second time: set it once, under the script's main guard, or pass "
        "force=True.",
        zh="multiprocessing 的启动方式被设置了两次：请只在脚本的 main 保护中设置一次，或传入 force=True。",
    ),
)
