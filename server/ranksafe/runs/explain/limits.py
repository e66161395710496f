"""What only a rehearsal runs into: things the simulated devices, or this machine, cannot do.

A limit is never the user's error, so it is recognised before anything else is made of an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ranksafe.localization import Translated
from ranksafe.rehearsal.settings import LIMIT_PREFIX
from ranksafe.runs.explain.cpu_kernels import refused_by_the_cpu
from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.model import Failure

KIND = "simulation-limit"
"""Of a failure that the simulated devices themselves called a limit."""
_TYPE = "SimulationLimit"
_CPP_TRACE = re.compile(
    r"\n(?:Exception raised from|C\+\+ CapturedTraceback|CPU: registered at).*", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class _Sign:
    kind: str
    pattern: re.Pattern[str]


def limit_behind(raised: Raised) -> Raised | None:
    """The limit that an exception is or came from; what was being handled when it was raised counts, too."""
    return next((each for each in raised.chain() if _is_limit(each)), None)


def limit_text(text: str) -> str:
    """The words of a limit, without the prefix and without what libtorch appends to its messages."""
    _, found, rest = text.partition(LIMIT_PREFIX)
    return _CPP_TRACE.sub("", rest if found else text).strip()


def kind_of_limit(failure: Failure, *, offline: bool) -> str | None:
    """Which limit of a rehearsal an ordinary-looking failure is; None: it is none.

    ``offline``: the network was kept out of reach, so a failed download says nothing about the script.
    """
    if failure.kind in _KINDS:
        return _KINDS[failure.kind]
    if offline and failure.kind == "no-network":
        return "network"
    return kind_of_text(failure.message, offline=offline)


def kind_of_text(text: str, *, offline: bool) -> str | None:
    """The same for an exception's "Type: message"."""
    if LIMIT_PREFIX in text or text.startswith(_TYPE):
        return KIND
    if offline and _NETWORK.search(text):
        return "network"
    if refused_by_the_cpu(text):
        return "missing-kernel"
    return next((sign.kind for sign in _SIGNS if sign.pattern.search(text)), None)


def _is_limit(raised: Raised) -> bool:
    return raised.type == _TYPE or LIMIT_PREFIX in raised.message


def _signs() -> Iterator[_Sign]:
    for kind, pattern in (
        # What the isolation's layers over the user's folders cannot do (overlayfs in a user namespace).
        ("file-system", r"\[Errno 75\] Value too large for defined data type"),
        ("file-system", r"\[Errno 30\] Read-only file system"),
        ("file-system", r"\[Errno 18\] Invalid cross-device link"),
        ("missing-kernel", r"Could not run '[\w:.]+' with arguments from the '\w*CUDA\w*' backend"),
        ("missing-kernel", r"INTERNAL ASSERT FAILED at"),
        # Of fmt, in C++ alone: torch's profiler asks a CUDA library for a text, whose stand-in has none (CUDA builds).
        ("missing-kernel", r"\ARuntimeError: string pointer is null"),
        (
            "missing-package",
            rf"No module named '(?:{_GPU_PACKAGES})\b|\b(?:{_GPU_PACKAGES})\b.*(?:not (?:be )?installed|pip install)",
        ),
        ("missing-package", r"FlashAttention\w* has been toggled on, but it cannot be used"),
        ("missing-package", rf"(?:{_CUDA_LIBRARIES})[\w.-]*\.so[.\d]*: cannot open shared object"),
        ("missing-package", r"undefined symbol: \S*(?:[cC]uda|CUDA|cudnn|cublas|nccl)"),
        (
            "missing-package",
            r"Torch not compiled with CUDA|Found no NVIDIA driver|CUDA driver version is",
        ),
        ("missing-package", r"PyTorch is not linked with support for cuda"),
        (
            "no-terminal",
            r"\AEOFError: EOF when reading a line|\[Errno 25\] Inappropriate ioctl|\Aerror: \(25, ",
        ),
        ("compiler", r"\b(?:InductorError|BackendCompilerFailed|TritonMissing|CompilationError)\b"),
        (
            "compiler",
            r"active drivers \(\[\]\)|working triton installation|triton.*not (?:be )?found",
        ),
        (
            "host-memory",
            r"\AMemoryError|DefaultCPUAllocator: can't allocate memory|Cannot allocate memory",
        ),
        ("disk", r"No space left on device|Disk quota exceeded|PytorchStreamWriter failed writing"),
    ):
        yield _Sign(kind, re.compile(pattern))


_KINDS = {
    "host-out-of-memory": "host-memory",
    "worker-killed": "host-memory",
    "shared-memory": "host-memory",
    "disk-full": "disk",
    "write-failed": "disk",
    "worker-died": "host-memory",
    "fatal-signal": "crash",
}
"""Known failures that say something of this machine only."""
_GPU_PACKAGES = (
    "apex|bitsandbytes|causal_conv1d|cupy|deep_ep|deep_gemm|flash_attn(?:_interface|_3)?|flash_mla|flashinfer"
    "|gptqmodel|awq|auto_gptq|liger_kernel|mamba_ssm|megablocks|nvidia|pycuda|quanto_cuda|sageattention"
    "|tensorrt(?:_llm)?|transformer_engine|triton|unsloth|vllm|xformers"
)
_CUDA_LIBRARIES = (
    "libcuda|libcudart|libcublas|libcudnn|libnccl|libnvrtc|libcufft|libcurand|libcusparse|libcusolver|libnvToolsExt"
    "|libnvJitLink|libcupti|libcufile|libnvshmem"
)
_NETWORK = re.compile(
    r"\A(?:ConnectionError|ConnectTimeout|ConnectError|URLError|MaxRetryError|NewConnectionError|gaierror"
    r"|LocalEntryNotFoundError|OfflineModeIsEnabled)\b|Network is unreachable|Name or service not known"
    r"|Temporary failure in name resolution|offline mode is enabled|couldn't connect to '?https?:"
)
_SIGNS = tuple(_signs())

EXPLANATION = Translated(
    en="The rehearsal cannot go beyond this point. This says nothing about your code: what came before worked, what "
    "comes after was not tried.",
    zh_cn="预演无法越过此处。这并不说明你的代码有问题：此前的部分运行正常，此后的部分没有尝试。",
)
OF_KIND = {
    "missing-kernel": Translated(
        en="The simulated GPUs lack this operation.", zh_cn="模拟 GPU 缺少此操作。"
    ),
    "missing-package": Translated(
        en="It needs a package or library that only works with real GPUs.",
        zh_cn="此处需要只能在真实 GPU 上使用的包或库。",
    ),
    "compiler": Translated(
        en="Kernels compiled by triton or inductor cannot run on simulated GPUs.",
        zh_cn="由 triton 或 inductor 编译的 kernel 无法在模拟 GPU 上运行。",
    ),
    "host-memory": Translated(
        en="This machine's memory, where the simulated GPUs live, is not enough. Use fewer GPUs, smaller batches or "
        "a smaller model (--shrink on).",
        zh_cn="模拟 GPU 所在的本机内存不足。请减少 GPU 数、缩小批次，或使用更小的模型（--shrink on）。",
    ),
    "disk": Translated(
        en="The scratch folder that takes the script's output is full.",
        zh_cn="存放脚本输出的临时文件夹已满。",
    ),
    "file-system": Translated(
        en="What isolates the rehearsal lays a scratch folder over yours, and that cannot do this. Where the script "
        "may write to your folders: --isolation off.",
        zh_cn="隔离预演时，你的文件夹之上覆盖了一个临时文件夹，它不支持此操作。"
        "若允许脚本写入你的文件夹：--isolation off。",
    ),
    "network": Translated(
        en="A rehearsal has no network. Download what the script needs beforehand, let it be read (--network "
        "read-only), or let --shrink on stand in for it.",
        zh_cn="预演没有网络。请事先下载脚本所需的文件，允许读取网络（--network read-only），"
        "或用 --shrink on 以替代品代替。",
    ),
    "only-read": Translated(
        en="With --network read-only nothing is sent, tokens included. Download what the script needs beforehand, or "
        "let it do without this request.",
        zh_cn="使用 --network read-only 时不发送任何内容，包括令牌。请事先下载脚本所需的文件，或让脚本不发出此请求。",
    ),
    "time": Translated(
        en="The time ran out while every rank was computing: CPUs are slower than GPUs. Allow more time, or use "
        "smaller batches or a smaller model (--shrink on).",
        zh_cn="时间用尽时各 rank 仍在计算：CPU 比 GPU 慢。请延长时限，或使用更小的批次或模型（--shrink on）。",
    ),
    "own-time-limit": Translated(
        en="The script's own time limit for collectives ran out while a rank that others waited for was still at "
        "work: simulated GPUs are slower than real ones. Give the process group a longer timeout and rehearse again.",
        zh_cn="脚本自己为集合通信设定的时限用尽时，其他 rank 等待的那个 rank 仍在工作：模拟 GPU 比真实 GPU 慢。"
        "请延长进程组的 timeout 后再次预演。",
    ),
    "no-terminal": Translated(
        en="A rehearsal has no terminal and nobody who answers: let the script take the answer as an argument.",
        zh_cn="预演没有终端，也无人应答：请让脚本以参数形式接收答案。",
    ),
    "crash": Translated(
        en="Compiled code crashed on the simulated GPUs; whether it would on real ones is not known.",
        zh_cn="编译代码在模拟 GPU 上崩溃；在真实 GPU 上是否也会如此并不清楚。",
    ),
}
"""What a kind of limit means, before `EXPLANATION`."""
