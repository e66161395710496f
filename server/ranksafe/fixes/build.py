"""From a finding's offer to edits: the rule's fix module is imported when somebody asks for its fix."""

from __future__ import annotations

import logging
from itertools import pairwise

from ranksafe.checker.finding import Applicability, Finding, FixOffer
from ranksafe.checker.registry import Registry
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

_LOG = logging.getLogger(__name__)


class LibcstMissing(Exception):
    """A fix rewrites code with libcst, which this Python does not have."""


def edits_for(
    finding: Finding, offer: FixOffer, module: Module, registry: Registry
) -> tuple[Edit, ...] | None:
    """The edits of one fix, sorted and not overlapping.

    None when there is none: the offer only explains, the code has changed since the finding, or the fix module failed
    (which is logged: a broken fix must not take the editor down).
    """
    try:
        return build_edits(finding, offer, module, registry)
    except LibcstMissing:
        _LOG.error("the fix %r of %s needs libcst", offer.key, finding.code)
        return None


def build_edits(
    finding: Finding, offer: FixOffer, module: Module, registry: Registry
) -> tuple[Edit, ...] | None:
    """`edits_for`, but raises LibcstMissing where that is the reason."""
    if offer.applicability is Applicability.DISPLAY:
        return None
    folder = registry.by_code(finding.code)
    try:
        fix_module = folder.fix_module() if folder is not None else None
        edits = fix_module.edits(finding, offer, module) if fix_module is not None else None
    except Exception as error:
        if isinstance(error, ImportError) and (error.name or "").split(".")[0] == "libcst":
            raise LibcstMissing from error
        _LOG.exception("the fix %r of %s failed", offer.key, finding.code)
        return None
    if not edits:
        return None
    ordered = tuple(sorted(dict.fromkeys(edits), key=lambda edit: edit.range))
    if overlapping(ordered):
        _LOG.error("the fix %r of %s gave overlapping edits", offer.key, finding.code)
        return None
    return ordered


def overlapping(edits: tuple[Edit, ...]) -> bool:
    """Whether two of the edits, which must be sorted, touch the same characters or insert at the same place."""
    return any(
        after.range.start < before.range.end or after.range.start == before.range.start
        for before, after in pairwise(edits)
    )
