"""Arguments that `run` and `rehearse` share, and the request they make."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranksafe.cli.argument_types import positive, seconds, size
from ranksafe.cli.output_options import add_output_arguments, add_quiet_argument
from ranksafe.localization import Language, Translated
from ranksafe.rehearsal.settings import (
    DEFAULT_DEVICE_MODEL,
    Confirm,
    Isolation,
    Network,
    RehearsalOptions,
    Shrink,
    Warm,
)
from ranksafe.runs.model import RunRequest

AUTO_STEPS = "auto"
"""Of ``rehearse --steps``: everything runs, over cut data."""

_HELP = {
    "script": Translated(
        "script to run, or a shell script that starts it; its arguments come after --",
        "要运行的脚本，或启动它的 shell 脚本；其参数写在 -- 之后",
    ),
    "module": Translated(
        "run a module, as `python -m NAME` does", "运行模块，与 `python -m NAME` 相同"
    ),
    "config": Translated("accelerate configuration to use", "使用的 accelerate 配置文件"),
    "launcher": Translated(
        "what starts the script (default: what its text asks for)",
        "用什么启动脚本（默认：由脚本内容决定）",
    ),
    "python": Translated(
        "the Python that has torch (default: the active or .venv one)",
        "装有 torch 的 Python（默认：当前激活的环境或 .venv）",
    ),
    "timeout": Translated("stop after that many seconds", "在指定秒数后停止"),
    "nodes": Translated(
        "simulated nodes, each with its GPUs (default: 1)",
        "模拟节点数，每个节点各有 GPU（默认：1）",
    ),
    "model": Translated(
        "GPU to simulate, for example a100-80g, h100, rtx4090 (default: {default})",
        "要模拟的 GPU，例如 a100-80g、h100、rtx4090（默认：{default}）",
    ),
    "memory": Translated(
        "memory of each simulated GPU, for example 24GiB (default: the GPU's own)",
        "每个模拟 GPU 的显存，例如 24GiB（默认：该型号的显存）",
    ),
    "host": Translated(
        "what all processes together may hold of this machine's memory (default: 70 %% of what is free)",
        "所有进程合计可占用的本机内存（默认：空闲内存的 70 %%）",
    ),
    "shrink": Translated(
        "replace pretrained models by small ones of the same architecture (default: auto, those that are large or "
        "not on disk; work: all of them, and large batches and pictures by small ones)",
        "用同架构的小模型替换预训练模型（默认：auto，即模型很大或不在磁盘上时；work：全部替换，并缩小大批次和大图片）",
    ),
    "isolation": Translated(
        "keep the script's files and network apart (default: auto, where the system allows it; else it asks)",
        "隔离脚本的文件和网络（默认：auto，系统允许时隔离，否则先询问）",
    ),
    "network": Translated(
        "what an isolated script finds of the network (default: none; read-only: what GET and HEAD of HTTP give, "
        "asked for without your tokens)",
        "隔离的脚本能访问的网络（默认：none，即没有；read-only：可用 HTTP 的 GET 和 HEAD 读取，不带你的令牌）",
    ),
    "confirm": Translated(
        "run a script that failed once more on one process before it is accused (default: auto, where its failure "
        "comes of something that stands in for the real thing)",
        "在指责脚本之前，让失败的脚本在单个进程上再运行一次（默认：auto，即失败涉及替身时）",
    ),
    "warm": Translated(
        "start from processes that have imported the libraries before (default: auto, where that changes nothing)",
        "从已导入这些库的进程启动（默认：auto，即不影响结果时）",
    ),
    "yes": Translated(
        "rehearse even where the script's files and network cannot be kept apart",
        "即使无法隔离脚本的文件和网络也进行预演",
    ),
}


def add_common_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """SCRIPT, how it is started and how the result is printed; what follows ``--`` is the script's."""

    def text(key: str) -> str:
        return _HELP[key].in_language(language)

    started = parser.add_mutually_exclusive_group(required=True)
    started.add_argument("script", nargs="?", type=Path, metavar="SCRIPT", help=text("script"))
    started.add_argument("-m", "--module", default="", metavar="NAME", help=text("module"))
    parser.add_argument("--config-file", type=Path, metavar="FILE", help=text("config"))
    parser.add_argument(
        "--launcher",
        choices=["accelerate", "torchrun", "python", "deepspeed", "fabric"],
        help=text("launcher"),
    )
    parser.add_argument("--python", type=Path, metavar="PATH", help=text("python"))
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help=text("timeout"))
    add_quiet_argument(parser, language)
    add_output_arguments(parser, language, ("text", "json", "github"))
    _take_script_arguments(parser)


def add_rehearsal_arguments(
    parser: argparse.ArgumentParser,
    language: Language,
    *,
    title: str,
    device_model: str = DEFAULT_DEVICE_MODEL,
    for_memory: bool = False,
) -> None:
    """What can be chosen about simulated GPUs, under a heading of its own; ``for_memory``: without what concerns the
    truth of values."""

    def text(key: str) -> str:
        return _HELP[key].in_language(language)

    group = parser.add_argument_group(title)
    group.add_argument("--nodes", type=positive, default=1, metavar="M", help=text("nodes"))
    group.add_argument(
        "--device-model",
        default=device_model,
        metavar="NAME",
        help=_HELP["model"].filled(default=device_model).in_language(language),
    )
    group.add_argument("--gpu-memory", type=size, metavar="SIZE", help=text("memory"))
    group.add_argument("--host-memory", type=size, metavar="SIZE", help=text("host"))
    group.add_argument(
        "--isolation",
        choices=[each.value for each in Isolation],
        default=Isolation.AUTO.value,
        help=text("isolation"),
    )
    group.add_argument(
        "--network",
        choices=[each.value for each in Network],
        default=Network.NONE.value,
        help=text("network"),
    )
    group.add_argument(
        "--warm",
        choices=[each.value for each in Warm],
        default=Warm.AUTO.value,
        help=text("warm"),
    )
    group.add_argument("--yes", action="store_true", help=text("yes"))
    if for_memory:
        group.set_defaults(shrink=Shrink.OFF.value, confirm=Confirm.OFF.value)
        return
    group.add_argument(
        "--shrink",
        choices=[each.value for each in Shrink],
        default=Shrink.AUTO.value,
        help=text("shrink"),
    )
    group.add_argument(
        "--confirm",
        choices=[each.value for each in Confirm],
        default=Confirm.AUTO.value,
        help=text("confirm"),
    )


def request_of(
    arguments: argparse.Namespace,
    language: Language,
    *,
    target: str,
    gpus: int | None,
    cpu_ranks: bool = False,
) -> RunRequest:
    """What the command line asks for."""
    return RunRequest(
        script=arguments.script or Path(arguments.module),
        module=arguments.module,
        target=target,
        gpus=gpus,
        cpu_ranks=cpu_ranks,
        steps=None if arguments.steps == AUTO_STEPS else arguments.steps,
        arguments=tuple(arguments.script_arguments),
        config_file=arguments.config_file,
        interpreter=arguments.python,
        working_directory=Path.cwd(),
        timeout_seconds=arguments.timeout,
        launcher=arguments.launcher,
        rehearsal=rehearsal_of(arguments),
        language=language,
    )


def rehearsal_of(arguments: argparse.Namespace) -> RehearsalOptions:
    """The choices of `add_rehearsal_arguments`."""
    return RehearsalOptions(
        nodes=arguments.nodes,
        device_model=arguments.device_model,
        memory_bytes=arguments.gpu_memory,
        host_memory_bytes=arguments.host_memory,
        shrink=Shrink(arguments.shrink),
        isolation=Isolation(arguments.isolation),
        network=Network(arguments.network),
        confirm=Confirm(arguments.confirm),
        short_epochs=arguments.steps == AUTO_STEPS,
        warm=Warm(arguments.warm),
    )


def _take_script_arguments(parser: argparse.ArgumentParser) -> None:
    """Set what follows ``--`` aside before argparse sees it.

    argparse gives a positional with ``nargs="*"`` its (empty) share as soon as SCRIPT is read, and then refuses
    what comes after further options (CPython 3.10 to 3.13).
    """
    parse = parser.parse_args
    parser.set_defaults(script_arguments=[])

    def parse_args(words: Sequence[str] | None = None, namespace: Any = None) -> Any:
        given = list(sys.argv[1:] if words is None else words)
        at = given.index("--") if "--" in given else len(given)
        arguments = parse(given[:at], namespace)
        arguments.words = given[:at]
        arguments.script_arguments = given[at + 1 :]
        return arguments

    parser.parse_args = parse_args  # type: ignore[method-assign, assignment]
