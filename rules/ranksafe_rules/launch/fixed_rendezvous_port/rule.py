"""RS115: the port at which the ranks meet stands in the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules.launch.fixed_rendezvous_port.ports import (
    FixedPort,
    fixed_ports,
    torchrun_listens,
)

_DEFAULT_PORT: Final = "29500"
"""What torchrun and accelerate launch take where nobody gives them a port (torch 2.13.0, accelerate 1.15.0)."""

_TAKEN: Final = Translated(
    "Port {port} stands in the code: a second training on the same machine, or one that has not quite ended, has it "
    "already, and this one ends with EADDRINUSE (address already in use)",
    "端口 {port} 写死在代码中：同一台机器上的另一个训练、或尚未完全退出的训练已占用它时，本次训练会以 EADDRINUSE"
    "（address already in use）结束",
)
_NOBODY: Final = Translated(
    "torchrun and accelerate launch listen at the port that they put into MASTER_PORT; with {port} instead, all ranks "
    "wait for somebody who is not there, until the timeout of the process group",
    "torchrun 和 accelerate launch 在其写入 MASTER_PORT 的端口上监听；改用 {port} 后，所有 rank 都在等待并不存在的"
    "监听者，直到进程组超时",
)
_KEEP: Final = FixOffer(
    "keep-given",
    Translated(
        "Keep the port that is given from outside: os.environ.setdefault",
        "保留外部给出的端口：os.environ.setdefault",
    ),
    Applicability.SAFE,
)


class FixedRendezvousPort(Rule):
    """Looks for ports that are written down."""

    metadata = RuleMetadata(
        code="RS115",
        name="fixed-rendezvous-port",
        summary=Translated(
            "the port of the process group written into the code", "进程组的端口写死在代码中"
        ),
        level=Level.INFORMATION,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(r"EADDRINUSE",),
    )
    scope = Scope.MODULE
    at_rest = True
    mentions = frozenset({"MASTER_PORT", "tcp://"})
    on_several_gpus = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:  # noqa: ARG002
        """A finding for each port that nothing from outside can change."""
        if launch.gpus is not None and launch.gpus < 2:
            return
        for fixed in fixed_ports(module):
            message, level = _consequence(module, launch, fixed)
            fixes = [] if fixed.assignment is None else [_KEEP]
            yield self.finding(
                module, fixed.node, message.filled(port=fixed.port), level=level, fixes=fixes
            )


def _consequence(
    module: Module, launch: LaunchContext, fixed: FixedPort
) -> tuple[Translated, Level]:
    by_launcher = launch.launcher.starts_one_process_per_gpu or (
        launch.launcher is not Launcher.PYTHON and torchrun_listens(module)
    )
    if by_launcher and fixed.port != _DEFAULT_PORT:
        return _NOBODY, Level.WARNING
    return _TAKEN, Level.INFORMATION
