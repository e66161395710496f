"""``ranksafe run train.py``: start a script on GPUs, and draw its failure on the source."""

from __future__ import annotations

import argparse
from dataclasses import replace

from ranksafe.cli.argument_types import positive
from ranksafe.cli.run_options import (
    add_common_arguments,
    add_rehearsal_arguments,
    request_of,
)
from ranksafe.cli.running import carry_out
from ranksafe.localization import Language, Translated
from ranksafe.runs.blocking_launches import with_blocking_launches

_HELP = {
    "lost": Translated(
        "for ssh:HOST: end the run when the connection is lost (default: it goes on, see `attach`)",
        "用于 ssh:HOST：连接断开时结束运行（默认：继续运行，见 `attach`）",
    ),
    "target": Translated(
        "where to run: local, simulated:N, ssh:HOST or slurm:NAME (default: local)",
        "运行目标：local、simulated:N、ssh:HOST 或 slurm:NAME（默认：local）",
    ),
    "gpus": Translated("number of ranks (default: all free GPUs)", "rank 数（默认：所有空闲 GPU）"),
    "cpu": Translated("use gloo ranks on the CPU", "使用 CPU 上的 gloo rank"),
    "steps": Translated("stop after N optimizer steps", "在 N 个优化器步之后停止"),
    "hang": Translated(
        "what to do when ranks wait for each other in vain (default: stop)",
        "当各 rank 徒劳地互相等待时如何处理（默认：stop，停止运行）",
    ),
    "blocking": Translated(
        "let every CUDA kernel end before the next line (CUDA_LAUNCH_BLOCKING=1): slower, but assertions of kernels "
        "name the right line",
        "让每个 CUDA kernel 在下一行之前结束（CUDA_LAUNCH_BLOCKING=1）：较慢，但 kernel 的断言会指出准确的行",
    ),
    "detached": Translated(
        "leave processes alone that go on after the script has ended (default: they are ended)",
        "脚本结束后仍在运行的进程不予处理（默认：结束它们）",
    ),
    "rehearsal": Translated("for the target simulated:N", "用于目标 simulated:N"),
}


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `run`; those after ``--`` are the script's."""

    def text(key: str) -> str:
        return _HELP[key].in_language(language)

    add_common_arguments(parser, language)
    parser.add_argument("--target", default="local", metavar="T", help=text("target"))
    parser.add_argument("--gpus", type=positive, metavar="N", help=text("gpus"))
    parser.add_argument("--cpu-ranks", action="store_true", help=text("cpu"))
    parser.add_argument("--steps", type=positive, metavar="N", help=text("steps"))
    parser.add_argument("--on-hang", choices=["stop", "report"], default="stop", help=text("hang"))
    parser.add_argument("--blocking-launches", action="store_true", help=text("blocking"))
    parser.add_argument("--stop-when-lost", action="store_true", help=text("lost"))
    parser.add_argument("--keep-detached", action="store_true", help=text("detached"))
    add_rehearsal_arguments(parser, language, title=text("rehearsal"))


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Run it; 0 succeeded, 1 failed, 2 used wrongly or broken, 3 simulation limit, 130 cancelled."""
    request = request_of(
        arguments,
        language,
        target=arguments.target,
        gpus=arguments.gpus,
        cpu_ranks=arguments.cpu_ranks,
    )
    request = replace(
        request,
        on_hang=arguments.on_hang,
        stop_when_lost=arguments.stop_when_lost,
        keep_detached=arguments.keep_detached,
    )
    if arguments.blocking_launches:
        request = with_blocking_launches(request)
    return carry_out(request, arguments, language)
