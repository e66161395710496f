"""The edit of RS110: both spellings, and a default from the environment."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Finding, FixOffer
from ranksafe.fixes.arguments import add_argument, replace
from ranksafe.fixes.imports import import_name
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.launch.local_rank_option.options import (
    DASHED,
    OPTION,
    VARIABLE,
    LocalRankOption,
    option_of,
)


def edits(finding: Finding, offer: FixOffer, module: Module) -> Sequence[Edit] | None:  # noqa: ARG001
    """The dashed spelling first, as torch's documents have it; the default stays what it was where LOCAL_RANK is not
    set. None when the option is no longer there."""
    for call in module.calls_written("add_argument"):
        option = option_of(call)
        if option is not None and module.range_of(option.spelled) == finding.range:
            spellings = replace(module, option.spelled, f'"{DASHED}", "{OPTION}"')
            return [spellings, *_default_edits(module, option)]
    return None


def _default_edits(module: Module, option: LocalRankOption) -> list[Edit]:
    """argparse converts a default that is a string as it does an argument, with ``type``."""
    if not option.may_start_with_variable(module):
        return []
    os, imports = import_name(module, "os")
    given = option.keyword("default")
    if given is None:
        added = add_argument(module, option.call, f'default={os}.environ.get("{VARIABLE}")')
        return [added, *imports]
    if isinstance(given, ast.Constant) and given.value is None:
        return [replace(module, given, f'{os}.environ.get("{VARIABLE}")'), *imports]
    written = module.text_of(given)
    return [replace(module, given, f'int({os}.environ.get("{VARIABLE}", {written}))'), *imports]
