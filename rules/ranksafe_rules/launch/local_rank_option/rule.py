"""RS110: a script waits for --local_rank, which no launcher of torch passes any more."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from packaging.version import Version
from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module
from ranksafe.source.position import Position, Range

from ranksafe_rules._shared.version_limits import runs_before
from ranksafe_rules.launch.local_rank_option.options import (
    DASHED,
    OPTION,
    LocalRankOption,
    option_of,
    passing_command,
    reads,
    told_otherwise,
)

_DASH_SINCE: Final = Version("2.0")
"""torch/distributed/run.py, ``config_from_args``: ``--local_rank=`` up to 1.13, ``--local-rank=`` from 2.0."""

_STAYS: Final = Translated(
    "No launcher of torch passes --local_rank any more: torchrun sets LOCAL_RANK in the environment instead, so "
    "{read} stays {default} in every process, and torch.distributed.launch passes --local-rank since torch 2.0, at "
    'which this parser stops ("unrecognized arguments: --local-rank=0")',
    "torch 的启动器都不再传入 --local_rank：torchrun 改为设置环境变量 LOCAL_RANK，因此 {read} 在每个进程中都是 "
    "{default}；torch.distributed.launch 自 torch 2.0 起传入 --local-rank，解析器会因此退出（“unrecognized "
    "arguments: --local-rank=0”）",
)
_SWALLOWED: Final = Translated(
    "No launcher of torch passes --local_rank any more: torchrun sets LOCAL_RANK in the environment instead, and the "
    "--local-rank that torch.distributed.launch passes since torch 2.0 is dropped by parse_known_args without a "
    "word, so {read} stays {default} in every process",
    "torch 的启动器都不再传入 --local_rank：torchrun 改为设置环境变量 LOCAL_RANK；torch.distributed.launch 自 torch "
    "2.0 起传入的 --local-rank 会被 parse_known_args 悄悄丢弃，因此 {read} 在每个进程中都是 {default}",
)
_STOPS: Final = Translated(
    "torch.distributed.launch passes --local-rank since torch 2.0, not --local_rank, and a parser that knows only "
    'this spelling stops ("unrecognized arguments: --local-rank=0"); torchrun passes neither, it sets LOCAL_RANK in '
    "the environment",
    "torch.distributed.launch 自 torch 2.0 起传入的是 --local-rank 而不是 --local_rank，只认识这种写法的解析器会退出"
    "（“unrecognized arguments: --local-rank=0”）；torchrun 两者都不传入，而是设置环境变量 LOCAL_RANK",
)
_STARTED: Final = Translated(
    "torch.distributed.launch starts it here", "此处由 torch.distributed.launch 启动"
)
_PLAIN: Final = Translated(
    "Plain python starts it here, as one process, for which the default is right",
    "此处由普通的 python 启动，只有一个进程，默认值是正确的",
)
_ACCEPT: Final = FixOffer(
    "accept-both",
    Translated(
        "Accept both spellings, and take the default from LOCAL_RANK",
        "同时接受两种写法，并以 LOCAL_RANK 作为默认值",
    ),
    Applicability.SAFE,
)
_SPELL: Final = FixOffer(
    "accept-both", Translated("Accept both spellings", "同时接受两种写法"), Applicability.SAFE
)


class LocalRankOptionRule(Rule):
    """Listens to options that are added to a parser."""

    metadata = RuleMetadata(
        code="RS110",
        name="local-rank-option",
        summary=Translated(
            "a --local_rank option that torch's launchers do not pass",
            "torch 的启动器不会传入的 --local_rank 选项",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(r"unrecognized arguments: --local-rank=\d+",),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Call,)
    called_names = frozenset({"add_argument"})
    mentions = frozenset({"--local_rank"})

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding when nothing else tells the program its local rank."""
        assert isinstance(node, ast.Call)
        option = option_of(node)
        if option is None or launch.launcher is Launcher.PYTHON:
            return
        if launch.is_before("torch", _DASH_SINCE):
            return
        # Whether commands make several processes is not asked: a single one is passed the option, too.
        if launch.assumed_gpus < 2:
            return
        for finding in self._findings(module, option):
            if not runs_before(module, launch, "torch", _DASH_SINCE):
                yield finding

    def _findings(self, module: Module, option: LocalRankOption) -> Iterator[Finding]:
        fixes = [_ACCEPT if option.may_start_with_variable(module) else _SPELL]
        passed = passing_command(module)
        if passed is not None and not module.users_mention(DASHED):
            line = Range(Position(passed.line - 1, 0), Position(passed.line - 1, 0))
            related = [Related(_STARTED, line, passed.file)]
            yield self.finding(module, option.spelled, _STOPS, related=related, fixes=fixes)
            return
        default = option.default(module)
        if default is None or told_otherwise(module, option):
            return
        found = _consequence(module, option)
        if found is None:
            return
        message, level = found
        related = []
        plain = module.plain_start()
        if plain is not None:
            if OPTION in plain.text:
                return  # The command passes it.
            line = Range(Position(plain.line - 1, 0), Position(plain.line - 1, 0))
            related, level = [Related(_PLAIN, line, plain.file)], Level.INFORMATION
        yield self.finding(
            module, option.spelled, message, level=level, related=related, fixes=fixes
        )


def _consequence(module: Module, option: LocalRankOption) -> tuple[Translated, Level] | None:
    """What happens to a script with the option, as far as the file shows it."""
    used = reads(module)
    if not used:
        return None  # It stands there for a launcher that passes it, and no command shows one.
    if module.calls_written("parse_known_args"):
        # With two parsers in the file it is not clear which of them has the option.
        if option.is_required or module.calls_written("parse_args"):
            return None
        message = _SWALLOWED
    elif option.is_required:
        return _STOPS, Level.WARNING
    else:
        message = _STAYS
    filled = message.filled(read=module.text_of(used[0]), default=option.default(module))
    return filled, Level.WARNING
