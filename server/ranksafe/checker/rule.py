"""The rule protocol: what a rule declares, what it is given, what it gives back.

A rule is one class in ``rule.py`` of its folder. It declares its `RuleMetadata`, what it wants to see (`listens_to`,
`called_names`, `mentions`) and reports findings from `check`. It holds no state: one instance serves every file.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from ranksafe.checker.finding import Finding, FixOffer, Level, Related
from ranksafe.localization import Translated

if TYPE_CHECKING:
    from ranksafe.launch.context import LaunchContext
    from ranksafe.semantics.module import Module


class Scope(str, Enum):
    """How far a rule looks around the node it was given without asking a recorded query.

    CHUNK: inside the enclosing function, method or module-level code. CLASS: the whole class (for rules that listen
    to ``ast.ClassDef``). MODULE: the whole file, re-run after every edit: keep it to what `Module.facts` knows.
    """

    CHUNK = "chunk"
    CLASS = "class"
    MODULE = "module"


class Stability(str, Enum):
    """Preview rules run only where they are asked for (``--preview``)."""

    STABLE = "stable"
    PREVIEW = "preview"


class Symptom(str, Enum):
    """What people see of a pitfall on several GPUs, most of all."""

    HANGS = "hangs"
    CRASHES = "crashes"
    WRONG = "wrong"
    """It runs through, and what comes out is not what one GPU gives."""
    SLOW = "slow"
    """GPUs stand idle, or hold what they need not."""


@dataclass(frozen=True, slots=True)
class RuleMetadata:
    """What is known of a rule without running it."""

    code: str
    """``RSnnn``; the hundreds digit is the area (DESIGN: 1 launch, 2 devices, 3 data, 4 collectives, 5 model...)."""
    name: str
    """kebab-case, unique; the folder has the same name with underscores."""
    summary: Translated
    """One line for tables and completion."""
    level: Level
    """The level when nothing is known of the launch."""
    since: str
    """The ranksafe version that brought the rule."""
    stability: Stability = Stability.STABLE
    run_signatures: tuple[str, ...] = ()
    """Regular expressions of failure texts that prove this rule in a run."""
    silent_kinds: tuple[str, ...] = ()
    """Kinds of what a run's detectors see go wrong without an error where this rule is right
    (`ranksafe.runs.compared_ranks.comparisons`, `ranksafe_agent.detectors`)."""
    symptom: Symptom | None = None
    """None: nothing, the rule is about the file itself."""


class Rule(ABC):
    """One pitfall."""

    metadata: ClassVar[RuleMetadata]
    scope: ClassVar[Scope] = Scope.CHUNK
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = ()
    """Node kinds handed to `check`."""
    called_names: ClassVar[frozenset[str] | None] = None
    """For a rule that listens to ``ast.Call``: last segments of the callee as written (``from_pretrained``,
    ``Trainer``); None: every call. A cheap filter before any name is resolved; aliases (``T = Trainer; T()``) and
    imported aliases (``import Trainer as T``) are matched by their original name too."""
    at_rest: ClassVar[bool] = False
    """For a MODULE rule that follows calls or objects through the whole file: while somebody types, its last findings
    are kept and move with their lines; it runs again when the user pauses (`DocumentAnalysis.settle`)."""
    mentions: ClassVar[frozenset[str]] = frozenset()
    """Words of which at least one must occur in the file outside comments, else the rule is not run there; empty:
    always run."""
    on_several_gpus: ClassVar[bool] = False
    """For a rule about models that several GPUs run: it is not run where neither the file's text
    (`ranksafe.semantics.facts.SEVERAL_GPUS`) nor another file of the project says that they may."""
    follows_callers: ClassVar[bool] = False
    """For a rule `on_several_gpus` that asks who calls a function: it runs where a file of several processes imports
    this one, too, unless the project is a large one, in which most files are imported by most."""

    @abstractmethod
    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """Findings for ``node``, which is of a kind in `listens_to`; a MODULE rule that listens to nothing is called
        once per file with the ``ast.Module``.

        Everything outside the node's chunk is read through ``module``'s queries and ``launch``. A rule that raises
        is disabled for that file and the error logged.
        """

    def finding(
        self,
        module: Module,
        node: ast.AST,
        message: Translated,
        *,
        level: Level | None = None,
        related: Sequence[Related] = (),
        fixes: Sequence[FixOffer] = (),
        **data: Any,
    ) -> Finding:
        """A finding of this rule on ``node`` (for a function or class: on its name, for a call with a long argument
        list use the part that matters, such as the keyword's value)."""
        return Finding(
            code=self.metadata.code,
            name=self.metadata.name,
            level=self.metadata.level if level is None else level,
            message=message,
            range=module.range_of(node),
            related=tuple(related),
            fixes=tuple(fixes),
            data=tuple(sorted(data.items())),
        )
