"""What is installed: drivers, builds of torch, compiled packages, versions that do not fit."""

from __future__ import annotations

from functools import partial

from ranksafe.runs.explain.signatures.signature import Signature, signature

_EN = " This has nothing to do with several GPUs."
_ZH = "这与多 GPU 无关。"

_no_kernel = partial(
    signature,
    "gpu-architecture",
    en="There is no kernel for this GPU's architecture: in this build of torch, or in a compiled extension if the "
    "call chain ends in one. Install or build it for this GPU.",
    zh="没有适用于该 GPU 架构的 kernel：可能是此 torch 构建，若调用链止于某个编译的扩展则是该扩展。"
    "请为该 GPU 安装或构建。",
)

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "driver-too-old",
        # torch/cuda/__init__.py warns and goes on; c10/cuda/CUDAFunctions.cpp raises.
        r"UserWarning: CUDA initialization: The NVIDIA driver on your system is too old "
        r"\(found version (?P<version>\d+)\)",
        matters_anyway=True,
        en="This run is on the CPU. The NVIDIA driver is too old for this build of torch (it reports CUDA {version}), "
        "and "
        "torch only warned about it. Update the driver or install a torch built for an older CUDA.",
        zh="本次运行是在 CPU 上进行的。NVIDIA 驱动过旧，不满足此 torch 构建的要求（驱动报告的 CUDA 版本号 "
        "{version}），而 torch "
        "只给出了警告。请更新驱动，或安装为旧版 CUDA 构建的 torch。",
    ),
    signature(
        "driver-too-old",
        r"NVIDIA driver on your system is too old "
        r"\(found version (?P<version>\d+)\)"
        r"|CUDA driver version is insufficient",
        en="The NVIDIA driver is older than this build of torch needs[[ (it reports CUDA {version})]]. Update the "
        "driver or "
        "install a torch built for an older CUDA.",
        zh="NVIDIA 驱动过旧，不满足此 torch 构建的要求[[（驱动报告的 CUDA 版本号 {version}）]]。请更新驱动，"
        "或安装为旧版 CUDA 构建的 torch。",
    ),
    signature(
        "gpu-architecture",
        r"(?P<gpu>\S[^\n]{1,80}?) with CUDA capability (?P<arch>sm_\d+\w?) is not compatible "
        r"with the current PyTorch installation",
        matters_anyway=True,
        en="This build of torch has no kernels for {gpu} ({arch}). Install a build that supports it.",
        zh="此 torch 构建没有适用于 {gpu}（{arch}）的 kernel。请安装支持它的构建。",
    ),
    _no_kernel(r"no kernel image is available for execution on the device"),
    _no_kernel(
        r"\A(?:\w+\.)*\w*Error: (?:CUDA|HIP) error: (?:invalid device function|device kernel image is invalid)",
        raised_only=True,
    ),
    signature(
        "no-cuda",
        # torch 2.13.0: torch/cuda/__init__.py calls into torch._C, and a CPU-only build lacks those functions.
        r"Torch not compiled with CUDA enabled|PyTorch is not linked with support for cuda"
        r"|module 'torch\._C' has no attribute '(?P<name>_(?:cuda|nccl|cudnn)_?\w+)'",
        en="This torch is a CPU-only build[[ (its compiled part has no {name})]]: nothing of torch.cuda works in it. "
        "Install a build with CUDA, or let the script choose its device (the accelerator's, or by "
        "torch.cuda.is_available()).",
        zh="此 torch 是仅 CPU 的构建[[（其编译部分没有 {name}）]]：torch.cuda 的功能都不可用。请安装带 CUDA 的构建，"
        "或让脚本自行选择设备（accelerator 的设备，或由 torch.cuda.is_available() 决定）。",
    ),
    signature(
        "no-accelerator-build",
        r"(?:module 'torch\._C' has no attribute '_|Torch not compiled with )"
        r"(?P<device>(?i:xpu|mtia|mps|npu))(?:_\w+'| enabled)",
        en="This build of torch has no support for {device} devices. Install one that has, or let the script choose "
        "its device.",
        zh="此 torch 构建不支持 {device} 设备。请安装支持它的构建，或让脚本自行选择设备。",
    ),
    signature(
        "binary-mismatch",
        r"module 'torch\._C[\w.]*' has no attribute '(?P<name>\w+)'",
        en="torch's compiled part has no {name}: its Python files and its compiled part are of different versions, or "
        "another package was made for another torch. Reinstall torch, then that package." + _EN,
        zh="torch 的编译部分没有 {name}：其 Python 文件与编译部分版本不同，或另一个包是为其他版本的 torch 制作的。"
        "请先重新安装 torch，再重新安装该包。" + _ZH,
    ),
    signature(
        "no-cuda",
        r"Found no NVIDIA driver on your system|No CUDA GPUs are available|no CUDA-capable device is detected"
        r"|Attempting to deserialize object on a CUDA device but "
        r"torch\.cuda\.is_available\(\) is False",
        en="The script asks for CUDA, and there is none here. On CPU ranks, take the device from the "
        "accelerator or from torch.cuda.is_available().",
        zh="脚本请求 CUDA，但此处没有。使用 CPU rank 时，请从 accelerator 或 torch.cuda.is_available() 决定设备。",
    ),
    signature(
        "no-nccl",
        # torch 1.x to 2.13, torch/distributed/distributed_c10d.py.
        r"(?:Distributed package )?doesn't have NCCL",
        en="This torch was built without NCCL, as CPU builds and those for Windows and macOS are, whatever GPU is "
        'there. Use backend="gloo" (dist.is_nccl_available() tells which can be had), or a Linux build with CUDA.',
        zh='此 torch 构建不含 NCCL：CPU 版本以及 Windows、macOS 版本都是如此，与有无 GPU 无关。请使用 backend="gloo"'
        "（dist.is_nccl_available() 可查询是否可用），或使用带 CUDA 的 Linux 构建。",
    ),
    signature(
        "no-nccl",
        r"ProcessGroupNCCL is only supported with GPUs",
        en='The script asks for the "nccl" backend, which needs CUDA devices. On CPU ranks use "gloo": '
        'backend="nccl" if torch.cuda.is_available() else "gloo".',
        zh="脚本请求“nccl”后端，它需要 CUDA 设备。CPU rank 请使用“gloo”："
        'backend="nccl" if torch.cuda.is_available() else "gloo"。',
    ),
    signature(
        "binary-mismatch",
        # glibc's dynamic linker.
        r"symbol lookup error: (?:\S*/)?(?P<library>[^/\s:]+\.so[.\d]*): undefined symbol: (?P<symbol>[^,\s]+)"
        r"(?:, version (?P<other>\S+))?",
        en="{library} needs {symbol}[[ of {other}]], which the library that was loaded does not have: two "
        "installations of different versions are mixed. See LD_LIBRARY_PATH and loaded modules; torch brings its own "
        "CUDA libraries." + _EN,
        zh="{library} 需要 [[{other} 的 ]]{symbol}，而所加载的库中没有：混用了不同版本的两套安装。请检查 "
        "LD_LIBRARY_PATH 和已加载的 module；torch 自带其 CUDA 库。" + _ZH,
    ),
    signature(
        "binary-mismatch",
        r"ImportError: (?:\S*/)?(?P<library>[^/\s:]+\.so[.\d]*): undefined symbol: ",
        en="{library} was built for another version of torch than the one installed here. Reinstall that package for "
        "this torch, or take the build that its releases offer for it." + _EN,
        zh="{library} 是为其他版本的 torch 构建的。请针对此 torch 重新安装该包，或选用其发布的对应构建。"
        + _ZH,
    ),
    signature(
        "binary-mismatch",
        r"undefined symbol: |version `GLIBC\w*_[\d.]+' not found"
        r"|numpy\.dtype size changed, may indicate binary incompatibility"
        r"|A module that was compiled using NumPy 1\.x cannot be run in|operator torchvision::nms does not exist",
        en="A compiled package was built for another version of torch, numpy or the system than is installed here. "
        "Reinstall it for this environment." + _EN,
        zh="某个编译的包是为其他版本的 torch、numpy 或系统构建的。请在此环境中重新安装。" + _ZH,
    ),
    signature(
        "missing-library",
        r"\A(?:ImportError|OSError): (?P<library>\S+\.so[.\d]*): cannot open shared object file",
        en="The library {library} is not found by the loader on this machine: install what provides it, or mend "
        "LD_LIBRARY_PATH." + _EN,
        zh="此机器的加载器找不到库 {library}：请安装提供它的软件包，或修正 LD_LIBRARY_PATH。" + _ZH,
    ),
    signature(
        "version-requirement",
        # transformers 5.23.0: utils/versions.py and training_args.py.
        r"ImportError: (?P<needs>[\w.-]+[^\n]*?) is required for a normal functioning "
        r"of this module, but found (?P<found>\S+?)\.?(?:\s|$)",
        en="transformers needs {needs}, and {found} is installed." + _EN,
        zh="transformers 需要 {needs}，而安装的是 {found}。" + _ZH,
    ),
    signature(
        "version-requirement",
        r"ImportError: Using the `Trainer` with `PyTorch` requires `(?P<needs>accelerate>=[\d.]+)`",
        en="The Trainer needs {needs}, which is not installed in this interpreter." + _EN,
        zh="Trainer 需要 {needs}，而此解释器中没有安装。" + _ZH,
    ),
    signature(
        "version-requirement",
        # diffusers, transformers: utils/__init__.py, check_min_version.
        r"\AImportError: This example requires a (?:source install|minimum version)[\s\S]*?version found is "
        r"(?P<found>[\w.]*\w)",
        en="The example is of a newer version of the library than the installed one ({found}): install the library "
        "from source, or take the example of the tag that fits it." + _EN,
        zh="该示例所属的库版本比已安装的（{found}）新：请从源码安装该库，或使用与之匹配的 tag 中的示例。"
        + _ZH,
    ),
    signature(
        "missing-module",
        # transformers, accelerate, trl, datasets: optional packages, named by their pip command.
        r"\A(?:\w+\.)*(?:ImportError|PackageNotFoundError|ModuleNotFoundError): [^\n]*?"
        r"(?:requires|[Nn]o package metadata was found for|you need to install|[Pp]lease install|is not installed)",
        raised_only=True,
        en="What is asked for here needs a package that is not installed in the interpreter that ran this; the message "
        "names it." + _EN,
        zh="此处所需的软件包没有安装在运行所用的解释器中；名称见消息。" + _ZH,
    ),
)
