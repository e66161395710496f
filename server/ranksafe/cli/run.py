"""``ranksafe run train.py``: start a script on GPUs, and draw its failure on the source."""

from __future__ import annotations

import argparse

from ranksafe.cli.run_options import (
    add_common_arguments,
    add_rehearsal_arguments,
    positive,
    request_of,
)
from ranksafe.cli.running import carry_out
from ranksafe.localization import Language, Translated

_HELP = {
    "target": Translated(
        "where to run: local or simulated:N (default: local)",
        "运行目标：local 或 simulated:N（默认：local）",
    ),
    "gpus": Translated("number of ranks (default: all free GPUs)", "rank 数（默认：所有空闲 GPU）"),
    "cpu": Translated("use gloo ranks on the CPU", "使用 CPU 上的 gloo rank"),
    "steps": Translated("stop after N optimizer steps", "在 N 个优化器步之后停止"),
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
    return carry_out(request, arguments, language)
