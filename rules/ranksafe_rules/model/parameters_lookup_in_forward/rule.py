"""RS514: asking a replica for its parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.caught import is_caught
from ranksafe_rules._shared.parameter_lookups import looked_up_part
from ranksafe_rules._shared.replicated_class import replicated_class
from ranksafe_rules.model.parameters_lookup_in_forward.replacement import replacement_for

_MESSAGE = Translated(
    "The replicas that DataParallel makes have no parameters to iterate over (torch >= 1.5), so `{source}` raises "
    "{exception} in forward.",
    "DataParallel 生成的副本没有可供遍历的参数（torch >= 1.5），因此 `{source}` 会在 forward 中引发 {exception}。",
)
_TITLE = Translated("Use `{text}`", "改用 `{text}`")
_CAUGHT = frozenset({"StopIteration", "IndexError", "Exception", "BaseException"})


class ParametersLookupInForward(Rule):
    """Finds ``next(self.parameters())`` in what ``forward`` runs."""

    metadata = RuleMetadata(
        code="RS514",
        name="parameters-lookup-in-forward",
        summary=Translated(
            "next(self.parameters()) in forward raises StopIteration in a DataParallel replica",
            "forward 中的 next(self.parameters()) 会在 DataParallel 副本中引发 StopIteration",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(r"Caught StopIteration in replica \d+ on device \d+",),
    )
    scope = Scope.CLASS
    listens_to = (ast.ClassDef,)
    mentions = frozenset({"def forward"})
    on_several_gpus = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """One finding per lookup."""
        view = replicated_class(module, node, launch)
        if view is None:
            return
        for method in view.in_forward:
            for kind in (ast.Call, ast.Subscript):
                for lookup in view.nodes(kind, method):
                    if looked_up_part(view, lookup) is None or is_caught(
                        module, lookup, _CAUGHT, depth=0
                    ):
                        continue
                    replacement = replacement_for(view, method, lookup)
                    offers = [
                        FixOffer("by-name", _TITLE.filled(text=item[1]), Applicability.SAFE)
                        for item in (replacement,)
                        if item is not None
                    ]
                    message = _MESSAGE.filled(
                        source=module.text_of(lookup),
                        exception="StopIteration" if kind is ast.Call else "IndexError",
                    )
                    yield self.finding(module, lookup, message, fixes=offers)
