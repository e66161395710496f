"""Apply the fixes of a whole text: as many at once as do not touch each other, again until nothing is left to fix."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from ranksafe.checker.analysis import DocumentAnalysis
from ranksafe.checker.finding import Applicability, Finding, FixOffer
from ranksafe.checker.registry import Registry
from ranksafe.fixes.build import edits_for, overlapping
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit
from ranksafe.source.text import SourceText

_ROUNDS = 20
"""More rounds than any real file needs; two rules that undo each other must not go on for ever."""


@dataclass(frozen=True, slots=True)
class AppliedFix:
    """A finding that was repaired, and how. The finding's place is that in the text of its round."""

    finding: Finding
    offer: FixOffer


@dataclass(frozen=True, slots=True)
class FixedText:
    """A text after its fixes."""

    text: str
    applied: tuple[AppliedFix, ...]
    remaining: tuple[Finding, ...]


def fix_text(
    text: str,
    analyse: Callable[[str], DocumentAnalysis],
    registry: Registry,
    *,
    unsafe: bool = False,
) -> FixedText:
    """Apply all safe fixes (with ``unsafe`` the unsafe ones too) until no finding offers one.

    A fix after which the text no longer parses is not applied.
    """
    applied: list[AppliedFix] = []
    refused: set[tuple[Finding, str]] = set()
    analysis = analyse(text)
    for _ in range(_ROUNDS):
        batch = _batch(analysis.findings, module_of(analysis), registry, unsafe, refused)
        if not batch:
            break
        changed = apply_edits(text, [edit for _, edits in batch for edit in edits])
        if _parses(text) and not _parses(changed):
            batch = batch[:1]
            changed = apply_edits(text, list(batch[0][1]))
            if not _parses(changed):
                refused.add((batch[0][0].finding, batch[0][0].offer.key))
                continue
        if changed == text:
            break
        applied += [fix for fix, _ in batch]
        text = changed
        analysis = analyse(text)
    return FixedText(text, tuple(applied), analysis.findings)


def module_of(analysis: DocumentAnalysis) -> Module:
    """The module to build fixes on; one without nodes where no rule looked at the text (RS001 needs the text only)."""
    return analysis.module if analysis.module is not None else Module(analysis.source)


def apply_edits(text: str, edits: list[Edit]) -> str:
    """The text after all edits; equal ones (the same import wanted twice) count once.

    Raises ValueError when two edits overlap.
    """
    return SourceText(text).edited(list(dict.fromkeys(edits)))


def offer_to_apply(finding: Finding, *, unsafe: bool) -> FixOffer | None:
    """The finding's first fix that may be applied without asking: a safe one, else with ``unsafe`` an unsafe one."""
    for wanted in (Applicability.SAFE, Applicability.UNSAFE) if unsafe else (Applicability.SAFE,):
        for offer in finding.fixes:
            if offer.applicability is wanted:
                return offer
    return None


_Fix = tuple[AppliedFix, tuple[Edit, ...]]


def _batch(
    findings: tuple[Finding, ...],
    module: Module,
    registry: Registry,
    unsafe: bool,
    refused: set[tuple[Finding, str]],
) -> list[_Fix]:
    """Fixes that can be applied together, in the order of their findings."""
    batch: list[_Fix] = []
    accepted: list[Edit] = []
    for finding in findings:
        offer = offer_to_apply(finding, unsafe=unsafe)
        if offer is None or (finding, offer.key) in refused:
            continue
        edits = edits_for(finding, offer, module, registry)
        if edits is None:
            continue
        together = sorted(dict.fromkeys([*accepted, *edits]), key=lambda edit: edit.range)
        if overlapping(tuple(together)):
            continue
        accepted = together
        batch.append((AppliedFix(finding, offer), edits))
    return batch


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
