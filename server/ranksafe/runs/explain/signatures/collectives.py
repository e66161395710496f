"""Collectives that do not meet: mismatches, timeouts, lost peers."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "collective-mismatch",
        r"Detected mismatch between collectives on ranks\. Rank (?P<one>\d+) is running collective: "
        r".*?OpType=(?P<op>\w+)"
        r"[\s\S]*?but Rank (?P<two>\d+) is running collective: .*?OpType=(?P<other>\w+)",
        en="Ranks do different things: rank {one} is in {op}, rank {two} in {other}. Every rank must call the "
        "same collectives in the same order; look for a branch that depends on the rank or on local data.",
        zh="各 rank 执行的操作不同：rank {one} 在 {op}，rank {two} 在 {other}。所有 rank 必须以相同顺序调用相同的"
        "集合通信；请检查依赖 rank 或本地数据的分支。",
    ),
    signature(
        "collective-shape-mismatch",
        r"Received data size doesn't match expected size|Cannot apply desired operation due to shape mismatches"
        r"|op\.preamble\.length <= op\.nbytes",
        en="The ranks sent tensors of different sizes into one collective. Pad them first "
        "(accelerator.pad_across_processes), or gather objects.",
        zh="各 rank 向同一个集合通信传入了大小不同的张量。请先填充（accelerator.pad_across_processes），"
        "或使用对象收集。",
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
        "collective-timeout",
        r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<op>\w+)",
        secondary=True,
        en="This rank waited in collective {number} ({op}) until the timeout: another rank never joined, or "
        "joined another one. Compare the ranks: different operations mean they took different branches.",
        zh="该 rank 在第 {number} 个集合通信（{op}）中一直等到超时：有 rank 没有参与，或参与了别的集合通信。"
        "请比较各 rank：操作不同说明它们走了不同的分支。",
    ),
    signature(
        "collective-timeout",
        r"detected by watchdog at work|Timed out waiting \d+ms for (?:recv|send) operation"
        r"|failed to pass monitoredBarrier|wait timeout after \d+ms|Socket Timeout|Wait timeout",
        secondary=True,
        en="This rank waited for the others until the timeout: some rank did not reach the same collective. "
        "Look for a collective under a rank-dependent condition, or ranks with different numbers of batches.",
        zh="该 rank 等待其他 rank 直到超时：有 rank 没有到达同一个集合通信。请检查依赖 rank 的条件下的集合通信，"
        "或各 rank 批次数不同的情况。",
    ),
    signature(
        "collective-timeout",
        r"watchdog got stuck for \d+ seconds|Heartbeat monitor timed out",
        secondary=True,
        en="NCCL's watchdog made no progress on this rank: a collective or a kernel hangs.",
        zh="该 rank 上 NCCL 的 watchdog 没有进展：某个集合通信或 kernel 挂起。",
    ),
    signature(
        "peer-lost",
        r"Connection closed by (?:remote )?peer|Connection reset by peer|remote process exited or there was a "
        r"network error|ncclRemoteError|Broken pipe|NET/IB : Got completion from peer|failed to recv, got 0 bytes"
        r"|Connection was likely closed|Read error \[|Write error \["
        r"|NCCL WARN .*(?:Call to (?:recv|send).*failed|Net : )",
        secondary=True,
        en="This rank lost its connection to another rank, which ended first. The cause is on that rank.",
        zh="该 rank 与另一个先结束的 rank 失去了连接。原因在那个 rank 上。",
    ),
    signature(
        "stopped-by-launcher",
        r"SignalException: Process \d+ got signal|Sending process \d+ closing signal",
        secondary=True,
        en="The launcher stopped this rank because another one failed.",
        zh="由于另一个 rank 失败，启动器停止了该 rank。",
    ),
    signature(
        "nccl-system-error",
        r"ncclSystemError|ncclUnhandledCudaError|unhandled (?:system|cuda) error|NCCL error",
        en="NCCL failed in the system or the driver. Run again with NCCL_DEBUG=INFO; in containers, look at "
        "the size of /dev/shm.",
        zh="NCCL 在系统或驱动层失败。请用 NCCL_DEBUG=INFO 重新运行；在容器中请检查 /dev/shm 的大小。",
    ),
)
