"""``ranksafe prove RS201``: run a rule's failing program and its fixed twin."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from ranksafe.checker.registry import Registry
from ranksafe.cli.output_options import add_format_argument
from ranksafe.cli.terminal import fail, note
from ranksafe.launch.interpreter import find_interpreter
from ranksafe.localization import Language, Translated
from ranksafe.runs.model import RunEvent
from ranksafe.runs.proof import NoProof, ProofOutcome, ProofReport, prove

_HELP = {
    "rule": Translated("code or name of a rule", "规则的编号或名称"),
    "python": Translated(
        "a Python that has torch (default: the active or .venv one)",
        "装有 torch 的 Python（默认：当前激活的环境或 .venv）",
    ),
    "rehearse": Translated(
        "run both programs on simulated GPUs (default: only those that need more GPUs than there are)",
        "在模拟 GPU 上运行两个程序（默认：仅限所需 GPU 多于现有 GPU 的程序）",
    ),
}
_TITLES = {
    "failing": Translated("failing program", "失败程序"),
    "fixed": Translated("fixed program", "修复后的程序"),
}
_STATUS = {
    ProofOutcome.PROVED: 0,
    ProofOutcome.NOT_PROVED: 1,
    ProofOutcome.NOT_RUN: 2,
    ProofOutcome.CANCELLED: 130,
}


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """The arguments of `prove`."""
    parser.add_argument("rule", metavar="RULE", help=_HELP["rule"].in_language(language))
    parser.add_argument(
        "--python", type=Path, metavar="PATH", help=_HELP["python"].in_language(language)
    )
    parser.add_argument(
        "--rehearse", action="store_true", help=_HELP["rehearse"].in_language(language)
    )
    add_format_argument(parser, language)


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Run both programs; 0 proved, 1 not proved, 2 not run or no proof, 130 cancelled."""
    registry = Registry.load()
    folder = registry.find(arguments.rule)
    code = arguments.rule if folder is None else folder.metadata.code
    python = arguments.python or find_interpreter(Path.cwd(), os.environ) or Path(sys.executable)
    try:
        report = prove(
            code,
            registry,
            python,
            lambda event: _tell(event, arguments),
            language=language,
            rehearse=arguments.rehearse,
        )
    except NoProof as error:
        return fail(error.explanation.in_language(language), 2)
    if arguments.output_format == "json":
        print(json.dumps(report.to_json(language), ensure_ascii=False, indent=2))
    else:
        _print(report, language)
    return _STATUS[report.outcome]


def _tell(event: RunEvent, arguments: argparse.Namespace) -> None:
    if arguments.output_format == "text":
        note(event.text)


def _print(report: ProofReport, language: Language) -> None:
    for key, program in (("failing", report.failing), ("fixed", report.fixed)):
        title = _TITLES[key].in_language(language)
        print(f"{title}: {program.explanation.in_language(language)}")
        print(f"  {program.program}")
    print(report.summary.in_language(language))
