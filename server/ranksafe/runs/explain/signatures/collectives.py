"""Collectives that do not meet: mismatches, timeouts, lost peers."""

from __future__ import annotations

from ranksafe.runs.explain.signatures import fingerprints
from ranksafe.runs.explain.signatures.signature import Signature, signature
from ranksafe.runs.explain.timeouts import explain_timeout

SIGNATURES: tuple[Signature, ...] = (
    *fingerprints.SIGNATURES,
    signature(
        "collective-shape-mismatch",
        r"Received data size doesn't match expected size|Cannot apply desired operation due to shape mismatches"
        r"|op\.preamble\.length <= op\.nbytes",
        en="The ranks met with tensors of different sizes. Either one collective was given sizes that differ: pad them "
        "first (accelerator.pad_across_processes), or gather objects. Or the ranks are in different collectives, most "
        "often because one had fewer batches, skipped a step, or called one more under a condition.",
        zh="各 rank 以大小不同的张量相遇。要么同一个集合通信得到的大小不同：请先填充"
        "（accelerator.pad_across_processes），或使用对象收集；要么各 rank 处于不同的集合通信，"
        "多半是某个 rank 的批次较少、跳过了一步，或在某个条件下多调用了一次。",
    ),
    signature(
        "gather-list-on-other-rank",
        r"Argument ``?gather_list``? must NOT be specified on non-destination ranks",
        en="Only the destination rank may pass a list: use `out if rank == dst else None`.",
        zh="只有目标 rank 可以传入列表：请使用 `out if rank == dst else None`。",
    ),
    signature(
        "no-backend-for-device",
        r"No backend type associated with device type (?P<device>\w+)",
        en="A collective got a tensor on {device}, which the process group's backend does not serve. Move it "
        "to the rank's device first.",
        zh="集合通信收到了位于 {device} 的张量，而该进程组的后端不支持。请先把它移到该 rank 的设备上。",
    ),
    signature(
        "no-backend-for-device",
        # torch up to 2.0, ProcessGroupNCCL.cpp.
        r"Tensors must be CUDA and dense",
        en="A collective got a tensor on the CPU (or a sparse one), which NCCL does not serve. Move it to the rank's "
        "device first.",
        zh="集合通信收到了位于 CPU 的（或稀疏的）张量，而 NCCL 不支持。请先把它移到该 rank 的设备上。",
    ),
    signature(
        "collective-timeout",
        # torch 1.x to 2.13, ProcessGroupNCCL.cpp; NumelIn since 2.1.
        r"(?:Watchdog c|C)aught collective operation timeout: WorkNCCL\(",
        secondary=True,
        elaborate=explain_timeout,
        en="This rank waited in a collective until the timeout.",
        zh="该 rank 在集合通信中一直等到超时。",
    ),
    signature(
        "collective-timeout",
        r"detected by watchdog at work: (?P<work>\d+), last enqueued NCCL work: (?P<enqueued>\d+), "
        r"last completed NCCL work: (?P<completed>\d+)",
        secondary=True,
        en="This rank's collective {work} failed or timed out: it had enqueued {enqueued} and completed {completed}. "
        "Compare the ranks: the one with the lowest completed number is the one that the others wait for.",
        zh="该 rank 的第 {work} 个集合通信失败或超时：已入队 {enqueued} 个，已完成 {completed} 个。请比较各 rank："
        "已完成数最小的就是其他 rank 在等待的那个。",
    ),
    signature(
        "collective-timeout",
        # torch 1.8 to 2.13, ProcessGroupGloo.cpp; rank 0 waits for the others, one by one or for all of them.
        r"\[Rank (?P<waited>\d+)\]: Ranks? (?P<missing>\d+(?:, ?\d+)*) failed to pass monitoredBarrier in "
        r"(?P<limit>\d+) ms",
        secondary=True,
        en="Rank {missing} did not come to monitored_barrier within {limit} ms: look at what it did instead. Rank "
        "{waited}, which reports it, only waited; the line, if there is one, is where.",
        zh="rank {missing} 没有在 {limit} 毫秒内到达 monitored_barrier：请查看它在做什么。报告此消息的 rank {waited} "
        "只是在等待；若显示了行号，那是它等待的位置。",
    ),
    signature(
        "collective-timeout",
        r"Rank (?P<rank>\d+) successfully reached monitoredBarrier, but received errors while waiting",
        secondary=True,
        en="Rank {rank} came to monitored_barrier in time. Rank 0's message names the rank that did not.",
        zh="rank {rank} 及时到达了 monitored_barrier。没有到达的 rank 见 rank 0 的消息。",
    ),
    signature(
        "collective-timeout",
        # torch 2.13.0, torch/distributed/elastic/utils/store.py.
        r"Timed out waiting on barrier on rank (?P<rank>\d+), for key prefix: [^\n]*?"
        r"missing_ranks=\[(?P<missing>[^<\]]+)\]",
        secondary=True,
        en="The launchers waited for each other until the timeout, and {missing} did not come: look at what happened "
        "there.",
        zh="各启动器互相等待直到超时，{missing} 没有到达：请查看那里发生了什么。",
    ),
    signature(
        "collective-timeout",
        r"detected by watchdog at work|Timed out waiting (?P<limit>\d+)ms for (?:recv|send) operation"
        r"|(?:failed to pass|timed out in) monitoredBarrier|wait timeout after \d+ms|Socket Timeout|Wait timeout"
        # gloo/transport/tcp/pair.cc, of a group whose wait another thread of the rank gave up.
        r"|Application timeout caused pair closure",
        secondary=True,
        en="This rank waited for the others until the timeout[[ of {limit} ms]]: some rank did not reach the same "
        "collective in time. Look for a collective under a rank-dependent condition, for ranks with different numbers "
        "of "
        "batches, and for long work of one rank alone (then raise the group's timeout).",
        zh="该 rank 等待其他 rank 直到超时[[（{limit} 毫秒）]]：有 rank 没有及时到达同一个集合通信。请检查依赖 rank "
        "的条件下的"
        "集合通信、各 rank 批次数不同的情况，以及某个 rank 独自进行的长时间工作（此时请延长进程组的超时）。",
    ),
    signature(
        "watchdog-stuck",
        # torch 2.2 to 2.13, ProcessGroupNCCL.cpp.
        r"ank (?P<rank>\d+)\] ProcessGroupNCCL's watchdog got stuck for (?P<seconds>\d+) seconds",
        secondary=True,
        en="On rank {rank} the NCCL watchdog itself made no progress for {seconds} s: a collective or a kernel hangs, "
        "or "
        "Python's lock is held. A collective timeout of any rank tells more; otherwise look at the stacks of that "
        "time.",
        zh="rank {rank} 上 NCCL 的 watchdog 自身在 {seconds} 秒内没有进展：某个集合通信或 kernel 挂起，或 Python "
        "的锁被占用。"
        "若有 rank 报告集合通信超时，以它为准；否则请查看当时的调用栈。",
    ),
    signature(
        "watchdog-stuck",
        r"Heartbeat monitor timed out! Process will be terminated|watchdog got stuck for (?P<seconds>\d+) seconds",
        secondary=True,
        en="The NCCL watchdog itself made no progress on this rank[[ for {seconds} s]]: a collective or a kernel "
        "hangs, or "
        "Python's lock is held. A collective timeout of any rank tells more; otherwise look at the stacks of that "
        "time.",
        zh="该 rank 上 NCCL 的 watchdog 自身没有进展[[（{seconds} 秒）]]：某个集合通信或 kernel 挂起，或 Python "
        "的锁被占用。"
        "若有 rank 报告集合通信超时，以它为准；否则请查看当时的调用栈。",
    ),
    signature(
        "child-process-lost",
        # CPython 3.8 to 3.14, multiprocessing/connection.py: a pipe between a program and what it started.
        r"\A(?:ConnectionResetError|BrokenPipeError|EOFError)\b",
        frames=r"multiprocessing/connection\.py:",
        raised_only=True,
        plain=True,
        en="A process that the script had started was gone before it answered: it failed, or came to its end. Its own "
        "error stands above this one in the output.",
        zh="脚本启动的一个进程在应答之前就已结束：它失败了，或运行到了末尾。它自己的错误在输出中位于此错误之前。",
    ),
    signature(
        "peer-lost",
        r"Connection closed by (?:remote )?peer (?P<peer>\[[\d.a-f:]+\]:\d+|[\w.-]+<\d+>)",
        secondary=True,
        en="This rank lost its connection to the rank at {peer}, which ended first. The cause is on that rank.",
        zh="该 rank 与 {peer} 处先结束的 rank 失去了连接。原因在那个 rank 上。",
    ),
    signature(
        "peer-lost",
        r"Connection closed by (?:remote )?peer|Connection reset by peer|remote process exited or there was a "
        r"network error|ncclRemoteError|NET/IB ?: Got completion from peer|failed to recv, got 0 bytes"
        r"|Connection was likely closed|Stop_waiting response is expected|Read error \[|Write error \["
        r"|NCCL WARN .*(?:Call to (?:recv|send).*failed|Net : )",
        secondary=True,
        en="This rank lost its connection to another rank, which ended first, or the network between them (InfiniBand, "
        "Ethernet) failed. The cause is on the other rank, if its own error is anywhere.",
        zh="该 rank 与另一个先结束的 rank 失去了连接，或二者之间的网络（InfiniBand、以太网）出现故障。"
        "如果另一个 rank 有自己的错误，那就是原因。",
    ),
    signature(
        "peer-lost",
        # torch 1.8 to 2.13, distributed_c10d.py: init_process_group and new_group wait for all ranks in the store.
        r"\bBroken pipe\s*\Z|Connection reset by peer",
        frames=r"distributed_c10d\.py:(?:_store_based_barrier|init_process_group|_new_process_group_helper)",
        raised_only=True,
        secondary=True,
        en="This rank was still forming the process group when the process that keeps the store (rank 0) was already "
        "gone: it failed, or it came to the end of its program first. Look for its own error; without one, put a "
        "dist.barrier() before destroy_process_group() or the end of the script.",
        zh="该 rank 仍在建立进程组时，保存 store 的进程（rank 0）已经退出：它失败了，或先运行到了程序末尾。"
        "请查看它自己的错误；若没有错误，请在 destroy_process_group() 或脚本结束之前加上 dist.barrier()。",
    ),
    signature(
        "peer-lost",
        r"\A(?:BrokenPipeError: )?\[Errno 32\] Broken pipe|\A(?:\w+Error: )?[^\n]{0,200}\bBroken pipe\s*\Z",
        raised_only=True,
        secondary=True,
        en="This rank wrote to a connection whose other end is gone. The cause is on the other side.",
        zh="该 rank 向另一端已断开的连接写入。原因在另一端。",
    ),
    signature(
        "peer-lost",
        r"NCCL communicator was aborted",
        secondary=True,
        en="This rank's collective was aborted because another rank failed or timed out. The cause is there.",
        zh="由于另一个 rank 失败或超时，该 rank 的集合通信被中止。原因在那个 rank 上。",
    ),
    signature(
        "stopped-by-launcher",
        # Of the launcher's own line only: a rank's exception never says it.
        r"\A[^\n]*Sending process \d+ closing signal",
        secondary=True,
        en="The launcher stopped this rank because another one failed.",
        zh="由于另一个 rank 失败，启动器停止了该 rank。",
    ),
    signature(
        "collective-failed",
        r"oneCCL: (?P<where>[\w.]+:\d+)[^\n]*\n?[^\n]*EXCEPTION: (?P<what>[^\n]*)",
        en="oneCCL could not carry out a collective ({where}: {what}): its transport (MPI, libfabric) failed between "
        "the ranks, or another rank ended.",
        zh="oneCCL 无法执行集合通信（{where}：{what}）：rank 之间的传输层（MPI、libfabric）失败，或另一个 rank "
        "已结束。",
    ),
    signature(
        "collective-failed",
        r"(?:HCCL function|OPS function) error: (?P<call>[Hh]ccl\w+)(?:\([^\n]*)?[,，] ?error code is (?P<code>\d+)",
        en="HCCL, which carries collectives between Ascend NPUs, failed in {call} (error code {code}): the ranks do "
        "not reach each other, share an NPU, or another one ended. Its own log (plog) says more.",
        zh="在昇腾 NPU 之间执行集合通信的 HCCL 在 {call} 中失败（错误码 {code}）：各 rank 无法互通、共用了 NPU，"
        "或另一个 rank 已结束。更多信息见其自身日志（plog）。",
    ),
    signature(
        "nccl-invalid-usage",
        r"ncclInvalid(?:Usage|Argument)(?![\s\S]*Duplicate GPU)|NCCL error in: [^\n]*?, invalid (?:usage|argument)"
        # vLLM, vllm/distributed/device_communicators/pynccl_wrapper.py.
        r"|NCCL error: invalid (?:usage|argument)",
        raised_only=True,
        en="NCCL was called in a way it does not allow: a number of processes that is not the world size, ranks that "
        "share a GPU or use one that is not theirs, or sizes that differ. Look at torch.cuda.set_device and the "
        "launch; NCCL_DEBUG=WARN prints the reason.",
        zh="NCCL 的调用方式不被允许：进程数与 world size 不符、多个 rank 共用 GPU 或使用了不属于自己的 GPU，"
        "或大小不同。请检查 torch.cuda.set_device 与启动方式；NCCL_DEBUG=WARN 会打印原因。",
    ),
    signature(
        "nccl-system-error",
        # torch 2.0 to 2.13, NCCLUtils.cpp, getNcclErrorDetailStr.
        r"nccl(?:SystemError|InternalError|UnhandledCudaError)[^\n]*\n+Last error: *\n *(?P<last>[^\n]*\w[^\n]*)",
        en='NCCL failed in the system or the driver; its own reason is "{last}". Look there: the network cards, the '
        "GPUs, the driver and the container it names, not your script. NCCL_DEBUG=INFO prints what it did before.",
        zh="NCCL 在系统或驱动层失败；其自身给出的原因是“{last}”。请检查它所指的网卡、GPU、驱动或容器，而不是你的脚本。"
        "NCCL_DEBUG=INFO 会打印它之前所做的事。",
    ),
    signature(
        "nccl-system-error",
        r"NCCL WARN Cuda failure (?:\d+ )?'(?P<words>[^']+)'",
        en="A call of CUDA inside NCCL failed ({words}): the driver, a GPU, the links between GPUs, or what the "
        "container may do, and not your script. Look at nvidia-smi and dmesg; NCCL_P2P_DISABLE=1 leaves the links out "
        "as a try.",
        zh="NCCL 内部的 CUDA 调用失败（{words}）：问题在驱动、GPU、GPU 之间的链路或容器权限，而不是你的脚本。"
        "请查看 nvidia-smi 和 dmesg；可设置 NCCL_P2P_DISABLE=1 排除 GPU 链路试试。",
    ),
    signature(
        "nccl-system-error",
        r"ncclSystemError|ncclUnhandledCudaError|unhandled (?:system|cuda) error|ncclInternalError|NCCL error in: "
        r"|NCCL error: (?:unhandled|internal|remote)",
        en="NCCL failed in the system or the driver, and this text does not say where. Run again with "
        "NCCL_DEBUG=INFO; the "
        'line under "Last error", if there is one, is the reason; in containers, look at the size of /dev/shm.',
        zh="NCCL 在系统或驱动层失败，此文本没有说明位置。请用 NCCL_DEBUG=INFO 重新运行；若有“Last error”，"
        "其下一行就是原因；"
        "在容器中请检查 /dev/shm 的大小。",
    ),
    signature(
        "peer-lost",
        # Horovod 0.19 to 0.28.
        r"Horovod has been shut down\. This (?:was caused by an exception on one of the ranks|has been caused by)",
        raised_only=True,
        secondary=True,
        en="Another rank ended with an exception, and Horovod shut this one down with it. The cause is there.",
        zh="另一个 rank 因异常结束，Horovod 随之关闭了该 rank。原因在那个 rank 上。",
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
        "cannot-pickle",
        r"\A(?:AttributeError|TypeError|PicklingError|RuntimeError): [^\n]*?"
        r"[Cc]an(?:'t|not) (?:pickle(?: local object)?|get local object) (?P<what>[^\n:]{1,200})",
        frames=r"/torch/distributed/distributed_c10d\.py:_?\w*object",
        en="{what} cannot be pickled, and collectives of objects send them that way. Send plain values or tensors.",
        zh="{what} 不能 pickle，而对象的集合通信正是通过 pickle 发送。请发送普通值或张量。",
    ),
)
