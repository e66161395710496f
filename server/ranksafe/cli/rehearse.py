"""``ranksafe rehearse train.py``: run a script as if this machine had N GPUs."""

from __future__ import annotations

import argparse

from ranksafe.cli.argument_types import positive
from ranksafe.cli.run_options import (
    AUTO_STEPS,
    add_common_arguments,
    add_rehearsal_arguments,
    request_of,
)
from ranksafe.cli.running import carry_out
from ranksafe.localization import Language, Translated
from ranksafe.rehearsal.settings import DEFAULT_GPUS

_HELP = {
    "gpus": Translated(
        "simulated GPUs, per node (default: {default})",
        "每个节点的模拟 GPU 数（默认：{default}）",
    ).filled(default=DEFAULT_GPUS),
    "steps": Translated(
        "auto: cut long epochs, so that the script comes to its end (default); N: stop after N optimizer steps; "
        "0: run to the end, nothing cut",
        "auto：缩短过长的 epoch，使脚本能运行到结束（默认）；N：在 N 个优化器步之后停止；0：运行到结束，不做缩减",
    ),
    "devices": Translated("simulated GPUs", "模拟 GPU"),
}


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `rehearse`; those after ``--`` are the script's."""

    def text(key: str) -> str:
        return _HELP[key].in_language(language)

    add_common_arguments(parser, language)
    parser.add_argument(
        "--gpus", type=positive, default=DEFAULT_GPUS, metavar="N", help=text("gpus")
    )
    parser.add_argument(
        "--steps", type=steps, default=AUTO_STEPS, metavar="auto|N", help=text("steps")
    )
    add_rehearsal_arguments(parser, language, title=text("devices"))


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Rehearse it; 0 passed, 1 failed, 2 used wrongly or broken, 3 simulation limit, 130 cancelled."""
    request = request_of(arguments, language, target=f"simulated:{arguments.gpus}", gpus=None)
    return carry_out(request, arguments, language)


def steps(text: str) -> int | str | None:
    """``--steps``: None where nothing is cut. Raises ArgumentTypeError."""
    if text == AUTO_STEPS:
        return text
    return None if text == "0" else positive(text)
