"""The network between ranks and machines, as NCCL and gloo report it.

NCCL's messages were read in ``src/init.cc``, ``src/bootstrap.cc``, ``src/misc/socket.cc``, ``src/misc/shmutils.cc`` and
``src/transport/net_ib.cc`` of NCCL 2.18 to 2.27 and in the threads named beside them.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "nccl-version-skew",
        r"Mismatched NCCL version detected ?: rank (?P<one>\d+) version (?P<first>\d+) "
        r"rank (?P<two>\d+) version (?P<second>\d+)",
        en="The ranks use different versions of NCCL: rank {one} has {first}, rank {two} has {second}. Install the "
        "same "
        "torch (it brings NCCL) on every machine.",
        zh="各 rank 的 NCCL 版本不同：rank {one} 是 {first}，rank {two} 是 {second}。请在每台机器上安装相同的 torch"
        "（它自带 NCCL）。",
    ),
    signature(
        "no-network-interface",
        # gloo, transport/tcp/device.cc, torch 2.13.0.
        r"Unable to find address for: (?P<name>\S+)",
        en="gloo was told to use the network interface {name}, which this machine does not have: GLOO_SOCKET_IFNAME "
        "must name one of `ip -br addr` that reaches the other machines, or be unset.",
        zh="gloo 被指定使用网络接口 {name}，而本机没有该接口：GLOO_SOCKET_IFNAME 必须是 `ip -br addr` "
        "中能到达其他机器的接口，或取消设置。",
    ),
    signature(
        "nccl-no-interface",
        # NVIDIA/nccl#1837: a wrong NCCL_SOCKET_IFNAME shows as an address without a family.
        r"Bootstrap ?: no socket interface found|ncclSocketInit: connecting to address\s+with family \d+ is neither",
        en="NCCL found no network interface to use: NCCL_SOCKET_IFNAME names one that this machine does not have, or "
        "only "
        "the loopback is up. Set it to an interface of `ip -br addr` that reaches the other machines, or unset it.",
        zh="NCCL 找不到可用的网络接口：NCCL_SOCKET_IFNAME 指定的接口在本机不存在，或只有回环接口可用。请把它设为 "
        "`ip -br addr` 中能到达其他机器的接口，或取消设置。",
    ),
    signature(
        "nccl-no-interface",
        # NCCL 2.24 to 2.28, src/plugin/net.cc.
        r"Failed to initialize any NET plugin",
        en="NCCL could not start any network plugin: NCCL_NET or NCCL_NET_PLUGIN names one that is not there or does "
        "not fit this NCCL (a module of the cluster, a container's aws-ofi-nccl), or NCCL_SOCKET_IFNAME leaves no "
        "interface. Unset them, or load the plugin that belongs to this NCCL.",
        zh="NCCL 无法启动任何网络插件：NCCL_NET 或 NCCL_NET_PLUGIN 指定的插件不存在或与此 NCCL 不匹配（集群的 module、"
        "容器中的 aws-ofi-nccl），或 NCCL_SOCKET_IFNAME 没有留下可用接口。请取消设置它们，或加载与此 NCCL 配套的插件。",
    ),
    signature(
        "nccl-shared-memory",
        # NVIDIA/nccl#290, #525: containers have 64 MB unless told otherwise.
        r"Error while creating shared memory segment (?P<file>\S+) \(size (?P<size>\d+)\)"
        r"|Error: failed to extend (?P<name>/dev/shm/\S+) to (?P<bytes>\d+) bytes"
        r"|Call to posix_fallocate failed ?: No space left on device",
        en="NCCL could not get shared memory[[ ({file}, {size} bytes)]][[ ({name}, {bytes} bytes)]]: /dev/shm is full "
        "or too small. Enlarge "
        "it (docker run --shm-size=1g or more), and delete what earlier runs left there (/dev/shm/nccl-*).",
        zh="NCCL 无法获得共享内存[[（{file}，{size} 字节）]][[（{name}，{bytes} 字节）]]：/dev/shm 已满或过小。请增大它"
        "（docker run --shm-size=1g 或更大），并删除之前的运行遗留的文件（/dev/shm/nccl-*）。",
    ),
    signature(
        "nccl-infiniband",
        # NVIDIA/nccl-tests#185, #227, NVIDIA/nccl#2013.
        r"Call to (?P<call>ibv_\w+) failed(?: with)?(?: error)? (?P<why>[^,\n]+)",
        en="The InfiniBand or RoCE connection between machines could not be set up ({call}: {why}). Check that the "
        "ranks' "
        "network cards reach each other (NCCL_IB_HCA, NCCL_IB_GID_INDEX, NCCL_CROSS_NIC=0 on rail networks); "
        "NCCL_IB_DISABLE=1 shows whether plain sockets work.",
        zh="机器之间的 InfiniBand 或 RoCE 连接无法建立（{call}：{why}）。请检查各 rank 的网卡能否互通"
        "（NCCL_IB_HCA、NCCL_IB_GID_INDEX，rail 网络上 NCCL_CROSS_NIC=0）；NCCL_IB_DISABLE=1 "
        "可判断普通套接字是否可用。",
    ),
    signature(
        "nccl-infiniband",
        # Status 12 is IBV_WC_RETRY_EXC_ERR: the other side did not answer (NVIDIA/nccl#1814).
        r"NET/IB ?: Got completion from peer (?P<peer>\S+?) with (?:status=|error )(?P<status>12)\b",
        secondary=True,
        en="The InfiniBand card got no answer from {peer} (status {status}: retries exhausted): that machine's rank "
        "ended, "
        "or the link or a switch between them is broken.",
        zh="InfiniBand 网卡没有收到 {peer} 的应答（状态 {status}：重试耗尽）：那台机器的 rank 已结束，"
        "或二者之间的链路或交换机故障。",
    ),
    signature(
        "nccl-connection-refused",
        # src/misc/socket.cc since NCCL 2.20.
        r"socketPollConnect: connect(?: to (?P<peer>\S+))? returned (?P<why>[\w ]+?), "
        r"exceeded error retry count \((?P<count>\d+)\)"
        r"|socketStartConnect: Connect to (?P<other>\S+) failed : (?P<reason>[^\n]+)",
        secondary=True,
        en="NCCL could not connect to another rank[[ at {peer}]][[ at {other}: {reason}]][[ ({why}, tried {count} "
        "times)]]. "
        "That rank has ended, or NCCL chose an interface on which the ranks cannot reach each other: look at the other "
        "ranks first, then set NCCL_SOCKET_IFNAME to the right interface, and check firewalls.",
        zh="NCCL 无法连接到另一个 rank[[（{peer}）]][[（{other}：{reason}）]][[（{why}，尝试 {count} 次）]]。"
        "该 rank 已结束，或 NCCL 选择的接口无法互通：请先查看其他 rank，再把 NCCL_SOCKET_IFNAME 设为正确的接口，"
        "并检查防火墙。",
    ),
    signature(
        "nccl-out-of-memory",
        # src/include/checks.h, CUDACHECK; the "Last error" under torch's DistBackendError.
        r"(?:NCCL WARN |Last error:\s*)Cuda failure (?:\d+ )?'out of memory'",
        en="NCCL itself found no GPU memory for its buffers, in the first collective or when a group was made. Where "
        "the "
        "model is not loaded yet, the batch size is not the cause: look for other processes on the GPU (nvidia-smi), "
        "for "
        "ranks on the same GPU, and for too little shared or pinned memory (containers, WSL); NCCL_SHM_DISABLE=1 shows "
        "whether it is that.",
        zh="NCCL 自身的缓冲区没有获得 GPU 内存，发生在第一个集合通信或创建进程组时。若模型尚未加载，则原因不是批大小："
        "请检查 GPU 上的其他进程（nvidia-smi）、同一 GPU 上的多个 rank，以及过小的共享内存或锁页内存（容器、WSL）；"
        "NCCL_SHM_DISABLE=1 可用来判断。",
    ),
    signature(
        "rendezvous-failed",
        # gloo/transport/tcp/pair.cc; torch 1.x to 2.3.
        r"gloo/transport/tcp/\S+ connect (?P<peer>\[[^\]\s]+\]:\d+): (?P<why>Connection refused|Connection timed out"
        r"|No route to host|Network is unreachable)",
        en="gloo could not connect this rank to the one at {peer} ({why}): that rank ended first, or its machine "
        "advertises the address of an interface on which it cannot be reached (a name that resolves wrongly in "
        "/etc/hosts). Look for the other rank's own error, then set GLOO_SOCKET_IFNAME.",
        zh="gloo 无法把该 rank 连接到 {peer} 处的 rank（{why}）：对方已先结束，或其机器公布了无法到达的接口地址"
        "（/etc/hosts 中的名称解析有误）。请先查看对方 rank 自己的错误，再设置 GLOO_SOCKET_IFNAME。",
    ),
    signature(
        "rendezvous-failed",
        r"Gloo connectFullMesh failed with",
        en="The ranks cannot reach each other with gloo: each machine advertises one address, and it is perhaps that "
        "of a "
        "wrong interface. Set GLOO_SOCKET_IFNAME (and NCCL_SOCKET_IFNAME) to the interface that the machines share; "
        "firewalls must let high ports through.",
        zh="各 rank 无法通过 gloo 互相连接：每台机器会公布一个地址，它可能属于错误的接口。请把 GLOO_SOCKET_IFNAME"
        "（及 NCCL_SOCKET_IFNAME）设为各机器共用的接口；防火墙须放行高位端口。",
    ),
    signature(
        "rendezvous-failed",
        r"network addresses of \((?P<host>[^,]+), (?P<port>\d+)\) cannot be retrieved "
        r"\(gai error: (?P<why>-?\d+ - [^)]+)\)",
        en="The name {host} (port {port}) does not resolve on this machine: {why}. Give --main_process_ip or "
        "--rdzv_endpoint "
        "an address instead of a name, or add the name to /etc/hosts.",
        zh="本机无法解析名称 {host}（端口 {port}）：{why}。请给 --main_process_ip 或 --rdzv_endpoint 填地址而非名称，"
        "或把该名称加入 /etc/hosts。",
    ),
    signature(
        "rendezvous-failed",
        r"The client socket has timed out after (?P<seconds>\d+?)(?:000ms|s|ms) while trying to connect to "
        r"\(?(?P<address>[^\s),]+(?:, \d+)?)\)?",
        secondary=True,
        en="This machine did not reach {address} within {seconds} s: a firewall, a wrong address or port, or rank 0 "
        "did "
        "not start there. Look for rank 0's own error first.",
        zh="本机在 {seconds} 秒内未能连接到 {address}：防火墙、地址或端口错误，或 rank 0 没有在那里启动。请先查看 "
        "rank 0 自身的错误。",
    ),
    signature(
        "rendezvous-failed",
        # torch 1.9 to 1.11, TCPStore's client (pytorch/pytorch#69197).
        r"connect\(\) timed out\. Original timeout was (?P<seconds>\d+?)(?:000)? ms",
        secondary=True,
        en="The store at which ranks or launchers meet could not be reached within {seconds} s: the address or port "
        "(MASTER_ADDR, --rdzv_endpoint) is wrong or behind a firewall, or nobody listens there, because rank 0 or the "
        "first machine's launcher did not start or ended. Look for its own error first.",
        zh="{seconds} 秒内未能连接到 rank 或启动器会合所用的 store：地址或端口（MASTER_ADDR、--rdzv_endpoint）有误或被"
        "防火墙阻挡，或那里无人监听，因为 rank 0 或第一台机器的启动器没有启动或已结束。请先查看它自身的错误。",
    ),
    signature(
        "rendezvous-failed",
        # torch, distributed/c10d/GlooDeviceFactory.cpp: no transport could be made. Lightning expects it of Windows
        # with torch 2.8 and 2.9; IAHispano/Applio#1019, RVC-Boss/GPT-SoVITS#2626.
        r"makeDeviceFor(?:Hostname|Interface)\(\): unsupported gloo device",
        en="gloo could not open a network device for this machine's name or interface when the process group was "
        "made: this build of torch does not support it here (reported of Windows builds), or the name leads to an "
        "adapter that cannot be used (a virtual one, a VPN). Your script is not the cause: try another version of "
        "torch, see where the machine's name resolves to, or run on Linux or WSL.",
        zh="建立进程组时 gloo 无法为本机名称或接口打开网络设备：此 torch 构建在这里不支持（见于 Windows 构建），或该"
        "名称指向无法使用的网卡（虚拟网卡、VPN）。问题不在你的脚本：请换用其他 torch 版本，检查本机名称解析到哪里，"
        "或在 Linux 或 WSL 上运行。",
    ),
    signature(
        "rendezvous-failed",
        r"The client socket has failed to connect to any network address of \((?P<address>[^)]+)\)"
        r"(?:.*?errno: \d+ - (?P<why>[^)]+))?",
        secondary=True,
        en="This machine cannot connect to the main process at {address}[[ ({why})]]. Check the address and port, "
        "routes and "
        "firewalls between the machines, and that rank 0 runs.",
        zh="本机无法连接到主进程 {address}[[（{why}）]]。请检查地址和端口、机器之间的路由与防火墙，以及 rank 0 "
        "是否在运行。",
    ),
    signature(
        "rendezvous-failed",
        # torch 1.x, torch/distributed/rendezvous.py with MASTER_ADDR.
        r"ValueError: host not found: (?P<why>[^\n]+)",
        frames=r"torch/distributed/",
        en="The name of the main machine (MASTER_ADDR) cannot be resolved here ({why}). Look for a misspelt name, and "
        "for a machine, pod or service that is not there yet: start it first, or try again until its name is known.",
        zh="此处无法解析主节点的名称（MASTER_ADDR）（{why}）。请检查名称是否拼写有误，以及该机器、pod 或 service "
        "是否尚未就绪：请先启动它，或等到名称可解析后重试。",
    ),
    signature(
        "rendezvous-failed",
        r"gaierror: \[Errno -?\d+\] (?P<why>Name or service not known|Temporary failure in name resolution)",
        frames=r"torch/distributed/",
        en="This machine cannot resolve a host name, most often its own ({why}). Add it to /etc/hosts, or use an "
        "address; "
        "your code is not the cause.",
        zh="本机无法解析某个主机名，多半是它自己的主机名（{why}）。请把它加入 /etc/hosts，或改用地址；与你的代码无关。",
    ),
    signature(
        "rendezvous-failed",
        r"gaierror: \[Errno -?\d+\] (?P<why>Name or service not known|Temporary failure in name resolution)",
        en="A host name could not be resolved ({why}). In a rendezvous it is most often this machine's own name, "
        "missing "
        "from /etc/hosts; in other code it is an ordinary network error.",
        zh="无法解析主机名（{why}）。在 rendezvous 中多半是本机自己的名称不在 /etc/hosts 中；"
        "在其他代码中则是普通的网络错误。",
    ),
    signature(
        "rendezvous-failed",
        r"Rendezvous(?:Connection|Timeout|Closed)Error",
        secondary=True,
        en="The launchers of the machines did not find each other: one ended before they met, the number of nodes is "
        "wrong, or the address or port is.",
        zh="各机器的启动器未能会合：某个启动器提前结束、节点数不对，或地址、端口有误。",
    ),
)
