"""HCCL, which carries collectives between Ascend NPUs, by the codes that it puts before its messages.

What the codes mean: the CANN documentation's pages on HCCL errors EI0001 to EI0020 (CANN 8.x and 9.0) and EJ0001,
EJ0003; their titles changed between versions, the codes did not.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "port-in-use",
        r"\b(?:EI0019|EI0020|EJ0003)\b(?:[\s\S]{0,300}?port (?P<port>\d+) have)?",
        en="A port that HCCL needs between the NPUs[[, {port},]] is taken, mostly by a run that has not quite ended. "
        "Wait until it has, or give this run other ports: HCCL_NPU_SOCKET_PORT_RANGE and HCCL_HOST_SOCKET_PORT_RANGE. "
        "The master port is another one.",
        zh="HCCL 在 NPU 之间使用的端口[[ {port} ]]已被占用，通常是上一次运行尚未完全退出。请等它结束，或为本次运行"
        "指定其他端口：HCCL_NPU_SOCKET_PORT_RANGE 与 HCCL_HOST_SOCKET_PORT_RANGE。它不是 master port。",
    ),
    signature(
        "collective-failed",
        r"\bEI0001\b(?:[\s\S]{0,200}?variable \[(?P<name>[^\]]+)\])?",
        en="An environment variable of HCCL has a value that it does not take[[: {name}]]. The message names the right "
        "range.",
        zh="HCCL 的某个环境变量取值无效[[：{name}]]。合理范围见消息。",
    ),
    signature(
        "collective-timeout",
        r"\bEI0002\b|Notify register has not received the Notify record from remote rank",
        secondary=True,
        en="This NPU waited for another one inside a collective until the timeout (HCCL_EXEC_TIMEOUT, 1800 s if not "
        "set): the other rank failed before, is far slower, or has another number of batches; or the link loses "
        "packets. Look for an earlier error of another rank first.",
        zh="该 NPU 在集合通信中等待另一个 NPU 直到超时（HCCL_EXEC_TIMEOUT，默认 1800 秒）：对方 rank 已先失败、"
        "慢得多、批次数不同，或链路丢包。请先查找其他 rank 更早的错误。",
    ),
    signature(
        "collective-mismatch",
        r"\bEI0005\b",
        en="The ranks called one collective with different arguments (operation, type or size; HCCL's EI0005).",
        zh="各 rank 调用同一个集合通信时参数不同（操作、类型或大小；HCCL 的 EI0005）。",
    ),
    signature(
        "collective-timeout",
        r"\bEI0006\b|Getting socket times out",
        secondary=True,
        en="This NPU did not get its connection to another rank in time (HCCL_CONNECT_TIMEOUT, 120 s if not set): the "
        "other rank ended, is stuck or came too late, or the network between the NPUs does not let them meet. Look "
        "for another error on other ranks; if all report this one, compare the times.",
        zh="该 NPU 没有及时与另一个 rank 建立连接（HCCL_CONNECT_TIMEOUT，默认 120 秒）：对方 rank 已结束、卡住或来得"
        "太晚，或 NPU 之间的网络不通。请查看其他 rank 是否有别的错误；若都报告此错误，请比较时间。",
    ),
    signature(
        "collective-timeout",
        r"\bEI0015\b(?:[\s\S]{0,400}?unconnected ranks: \"\[(?P<missing>\d+(?:,\d+)*),?\]\")?",
        secondary=True,
        en="Not all ranks came when HCCL made the group[[: rank {missing} is missing]]. It ended before, its NPU is "
        "held by another process, or HCCL took the wrong network interface (HCCL_SOCKET_IFNAME).",
        zh="HCCL 建立通信域时并非所有 rank 都到达[[：缺少 rank {missing}]]。它已先结束、其 NPU 被其他进程占用，"
        "或 HCCL 选错了网卡（HCCL_SOCKET_IFNAME）。",
    ),
    signature(
        "collective-failed",
        r"\bEI00(?:04|14|16|17)\b",
        en="HCCL refuses its configuration: the rank table (RANK_TABLE_FILE) does not fit this job or its machines.",
        zh="HCCL 拒绝其配置：rank table（RANK_TABLE_FILE）与此作业或其机器不符。",
    ),
    signature(
        "collective-failed",
        r"\bEI0008\b",
        en="The ranks have different versions of CANN (HCCL). Install the same on every machine.",
        zh="各 rank 的 CANN（HCCL）版本不同。请在每台机器上安装相同版本。",
    ),
    signature(
        "collective-failed",
        r"\bEI00(?:09|10|12|13|18)\b",
        en="The link between the NPUs failed (HCCL could not set it up, or a transfer on it failed): look at the "
        "cables, at the NPUs' network (hccn_tool) and at their health (npu-smi info), not at your script.",
        zh="NPU 之间的链路出现故障（HCCL 无法建立链路，或传输失败）：请检查线缆、NPU 网络（hccn_tool）和健康状态"
        "（npu-smi info），而不是你的脚本。",
    ),
    signature(
        "nccl-out-of-memory",
        r"\bEI00(?:07|11)\b",
        en="HCCL got no memory on the NPU for its buffers: leave it some (a smaller batch, HCCL_BUFFSIZE), and look "
        "for other processes on the NPU (npu-smi info).",
        zh="HCCL 未能在 NPU 上为其缓冲区分配内存：请为它留出空间（减小批大小或 HCCL_BUFFSIZE），并检查 NPU 上的其他进程"
        "（npu-smi info）。",
    ),
    signature(
        "collective-failed",
        r"\bEJ0001\b|Failed to initialize the HCCP process",
        en="HCCL's helper process could not start on this NPU, mostly because an earlier run still holds it: end what "
        "is left of that run (npu-smi info shows it), and wait some seconds.",
        zh="HCCL 的辅助进程无法在此 NPU 上启动，通常是因为之前的运行仍占用它：请结束其残留进程（npu-smi info 可见），"
        "并等待几秒。",
    ),
    signature(
        "collective-failed",
        r"phyid:(?P<npu>\d+) realDeviceId:\d+ is err|reason=\[device id error\]",
        en="A process asked for an NPU[[ ({npu})]] that it does not see: ASCEND_RT_VISIBLE_DEVICES of the ranks of one "
        "group must let them see each other's NPUs, and each rank must set its own device.",
        zh="进程请求了一个它看不到的 NPU[[（{npu}）]]：同组各 rank 的 ASCEND_RT_VISIBLE_DEVICES 必须能看到彼此的 NPU，"
        "且每个 rank 要设置自己的设备。",
    ),
    signature(
        "collective-failed",
        # torch_npu, torch_npu/csrc/core/npu/NPUException.
        r"The process exits for this inner error, and the current working operator name is (?P<operator>Hccl\w+)",
        en="The collective {operator} failed on the NPU. What it met stands above it or in the files below "
        "~/ascend/log (plog): most often another rank that did not come, or that ended.",
        zh="集合通信 {operator} 在 NPU 上失败。其原因见上方输出或 ~/ascend/log 下的 plog 文件：多半是另一个 rank "
        "没有到达或已结束。",
    ),
    signature(
        "npu-error",
        # torch_npu: operators of CANN, and the stream in which they run.
        r"call (?P<operator>acl\w+) failed, detail:\s*(?P<code>E\w+)?"
        r"|ACL stream synchronize failed, error code:(?P<error>\d+)",
        en="An operation on the NPU failed[[: {operator}]][[ ({code})]][[ (error {error})]]. The line may be too late: "
        "run again with ASCEND_LAUNCH_BLOCKING=1; the files below ~/ascend/log (plog) tell more.",
        zh="NPU 上的某个操作失败[[：{operator}]][[（{code}）]][[（错误 {error}）]]。所示行可能偏后：请用 "
        "ASCEND_LAUNCH_BLOCKING=1 重新运行；~/ascend/log 下的 plog 文件有更多信息。",
    ),
    signature(
        "collective-failed",
        # torch_npu 2.1 and newer.
        r"\[ERR02200\] DIST call hccl api failed",
        en="A collective on the NPUs failed. What it met stands above it or in the files below ~/ascend/log (plog): "
        "most often another rank that did not come, or that ended.",
        zh="NPU 上的集合通信失败。其原因见上方输出或 ~/ascend/log 下的 plog 文件：多半是另一个 rank 没有到达或已结束。",
    ),
)
