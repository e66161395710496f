"""Findings of a file, kept up to date while it is edited.

`DocumentAnalysis` holds the file's units (see `ranksafe.semantics.units`). An edit inside one unit parses that unit
alone; any other edit parses the file and takes over every unit whose text is the same. Then only those results are
computed again that read something which changed. `DocumentAnalysis.settle` brings the result to what a fresh analysis
of the same text gives; editors call it when the user pauses.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ranksafe.checker.configuration import Configuration
from ranksafe.checker.dispatch import Active, Dispatcher
from ranksafe.checker.finding import Finding
from ranksafe.checker.suppression import apply_suppressions
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module, ReadKey
from ranksafe.semantics.units import ClassUnit, Unit, units_of
from ranksafe.source.position import Position, Range
from ranksafe.source.recovery import Parsed, parse, parse_tolerantly
from ranksafe.source.text import SourceText

if TYPE_CHECKING:
    from ranksafe.checker.registry import Registry
    from ranksafe.semantics.project import Project

Status = Literal["complete", "partial", "stale"]

RELEVANT = re.compile(
    r"\b(?:torch|transformers|accelerate|trl|jax|lightning|pytorch_lightning|deepspeed|adapters|peft|flax)\b"
)
"""A file that mentions none of these libraries cannot have a finding and is not parsed."""


class Analyzer:
    """Rules, configuration and launch context under which files are analysed."""

    def __init__(
        self,
        registry: Registry,
        configuration: Configuration,
        launch: LaunchContext,
        project: Project | None = None,
    ) -> None:
        self.registry = registry
        self.configuration = configuration
        self.launch = launch
        self.project = project
        self.enabled = tuple(
            folder.metadata for folder in registry.rules if configuration.enables(folder.metadata)
        )
        codes = {metadata.code for metadata in self.enabled}
        self.dispatcher = Dispatcher(
            [folder.rule for folder in registry.rules if folder.metadata.code in codes]
        )

    def concerns(self, text: str) -> bool:
        """Whether a text can have findings at all: it names a library, and a word that some rule waits for."""
        return RELEVANT.search(text) is not None and self.dispatcher.has_rule_for(text)

    def codes_checked_in(self, path: Path | None) -> frozenset[str]:
        """Codes of the rules that speak in a file; ``per-file-ignores`` considered."""
        return frozenset(
            metadata.code
            for metadata in self.enabled
            if path is None or not self.configuration.ignored_in(path, metadata)
        )

    def open(self, path: Path | None, text: str) -> DocumentAnalysis:
        """Analyse a file from nothing."""
        return DocumentAnalysis(self, path, text)


@dataclass(slots=True)
class _Result:
    """Findings of one task on one unit, as they stood when it was checked."""

    findings: list[Finding]
    reads: frozenset[ReadKey]
    start: int
    """The unit's first line then."""
    anchors: list[tuple[Unit, int]]
    """For each finding its unit with that unit's first line then, followed by those of its related places in this
    file; empty where all findings lie in the unit itself and none has related places."""


class DocumentAnalysis:
    """One file under edit."""

    def __init__(self, analyzer: Analyzer, path: Path | None, text: str) -> None:
        self._analyzer = analyzer
        self.path = path
        self.status: Status = "complete"
        self.blanked: frozenset[int] = frozenset()
        """0-based lines left out because they are broken."""
        self._source = SourceText(text)
        self._active = Active(analyzer.launch)
        self._readers: dict[ReadKey, set[Unit]] = defaultdict(set)
        self._module_reads: frozenset[ReadKey] = frozenset()
        self._findings: tuple[Finding, ...] | None = None
        self._facts_seen: object = None
        self.module: Module | None = None
        self._build(None)

    # -- the public face

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings sorted by position; suppressed and deselected ones are left out."""
        if self._findings is None:
            self._findings = self._collect()
        return self._findings

    @property
    def rule_errors(self) -> dict[str, str]:
        """Codes of rules that failed on this file, with tracebacks."""
        return dict(self._active.failed)

    @property
    def asked_project(self) -> bool:
        """Whether the findings depend on other files of the project too."""
        return self.module is not None and self.module.asked_project

    @property
    def source(self) -> SourceText:
        """The text analysed last."""
        return self._source

    def change(self, text: str, first_line: int, last_line: int) -> None:
        """Take over edited text.

        ``first_line`` and ``last_line`` are the 0-based lines of the text before that the edit touched, both
        included; for several edits at once their hull.
        """
        before = self._source
        self._source = SourceText(text)
        self._findings = None
        added = len(self._source.lines) - len(before.lines)
        if self.module is None or self.status == "stale":
            self._build((first_line, last_line + added))
            return
        self._note_words("".join(self._source.lines[first_line : last_line + added + 1]))
        if not self._change_one_unit(first_line, last_line, added):
            self._build((first_line, last_line + added))

    def settle(self) -> bool:
        """Make the result what a fresh analysis gives; says whether the findings changed."""
        before = self.findings
        self._findings = None
        if self.status != "complete" or self.module is None:
            self._build(None)
        elif not self._analyzer.concerns(self._source.text):
            self._drop()
        return self.findings != before

    def reconfigure(self, analyzer: Analyzer) -> None:
        """Take over other rules, configuration, launch context or project."""
        self._analyzer = analyzer
        self._drop()
        self._build(None)

    # -- building

    def _drop(self) -> None:
        self.module = None
        self.status = "complete"
        self.blanked = frozenset()
        self._readers = defaultdict(set)
        self._module_findings: list[Finding] = []
        self._findings = None
        self._active = Active(self._analyzer.launch)

    def _build(self, edited: tuple[int, int] | None) -> None:
        """Parse the whole file, keep the units that are the same, check the rest."""
        text = self._source.text
        if not self._analyzer.concerns(text):
            self._drop()
            return
        parsed = parse_tolerantly(text, edited)
        if parsed is None:
            if self.module is None:
                self._drop()
            self.status = "stale"
            return
        if self.module is None:
            self._drop()
            self.module = Module(
                self._source,
                name=self._module_name(),
                path=None if self.path is None else str(self.path),
                project=self._analyzer.project,
            )
            self._active.words.clear()
        self._note_words(text)
        self.status = "partial" if parsed.blanked else "complete"
        self.blanked = parsed.blanked
        self._take_over(parsed)

    def _module_name(self) -> str:
        if self.path is None:
            return "module"
        if self._analyzer.project is not None:
            return self._analyzer.project.module_name(self.path)
        return self.path.stem

    def _note_words(self, text: str) -> None:
        missing = self._analyzer.dispatcher.words - self._active.words
        found = {word for word in missing if word in text}
        if found:
            self._active.words |= found
            self._forget_results()

    def _forget_results(self) -> None:
        if self.module is not None:
            for unit in self.module.all_units():
                self._forget(unit)

    def _take_over(self, parsed: Parsed) -> None:
        module = self.module
        assert module is not None
        merge = _Merge(module.units)
        parsed_text = self._source if parsed.lines is None else SourceText("", parsed.lines)
        units = merge.merged(units_of(parsed.tree, parsed_text))
        affected = self._keys_of(merge.removed) | self._keys_of(merge.replaced_members)
        for unit in (*merge.removed, *merge.replaced_members):
            self._forget(unit)
            module.remove_unit(unit)
        module.units = units
        module.tree.body = [node for unit in units for node in unit.nodes]
        module.text_changed(self._source)
        for unit in (*merge.added, *merge.added_members):
            module.add_unit(unit)
        affected |= self._keys_of(merge.added) | self._keys_of(merge.added_members)
        self._check(affected)

    # -- the fast path

    def _change_one_unit(self, first: int, last: int, added: int) -> bool:
        """Parse and replace the one unit that the edit lies in; False when that is not enough."""
        module = self.module
        assert module is not None
        unit = self._unit_at(first, last)
        if unit is None or isinstance(unit, ClassUnit) or unit.end + added < unit.start:
            return False
        if self.blanked and not all(unit.start <= line <= unit.end for line in self.blanked):
            return False
        text = "".join(self._source.lines[unit.start : unit.end + 1 + added])
        nodes = _parse_unit(text, unit)
        if nodes is None or any(
            isinstance(node, ast.ClassDef) and unit.owner is None for node in nodes
        ):
            return False
        fresh = Unit(nodes, unit.owner, text)
        if fresh.start != unit.start or fresh.end != unit.end + added:
            return False
        affected = self._keys_of([unit])
        self._forget(unit)
        module.remove_unit(unit)
        self._splice(unit, fresh)
        self._move_below(unit.end, added, fresh)
        module.text_changed(self._source)
        module.add_unit(fresh)
        self.status, self.blanked = "complete", frozenset()
        after = self._keys_of([fresh])
        if _same_definition(unit, fresh):
            name = fresh.nodes[0].name  # type: ignore[attr-defined]
            for keys in (affected, after):
                keys.discard(("binding", name))
        self._check(affected | after)
        return True

    def _unit_at(self, first: int, last: int) -> Unit | None:
        module = self.module
        assert module is not None
        for unit in module.units:
            if not (unit.start <= first and last <= unit.end):
                continue
            if not isinstance(unit, ClassUnit):
                return unit
            for member in unit.members:
                if member.start <= first and last <= member.end:
                    return member
            return unit
        return None

    def _splice(self, old: Unit, new: Unit) -> None:
        module = self.module
        assert module is not None
        siblings = module.units if old.owner is None else old.owner.members
        siblings[siblings.index(old)] = new
        if old.owner is None:
            module.tree.body = [node for unit in module.units for node in unit.nodes]
        else:
            old.owner.node.body = [node for member in siblings for node in member.nodes]

    def _move_below(self, line: int, added: int, fresh: Unit) -> None:
        if not added:
            return
        module = self.module
        assert module is not None
        for unit in module.all_units():
            if unit is fresh:
                continue
            if unit.start > line:
                unit.start += added
                unit.end += added
            elif unit is fresh.owner:
                unit.end += added

    # -- results

    def _forget(self, unit: Unit) -> None:
        for task in ("rules", "classes"):
            result = unit.results.pop(task, None)
            if result is not None:
                for key in result.reads:
                    self._readers[key].discard(unit)
        unit.results.pop("facts", None)

    def _keys_of(self, units: list[Unit]) -> set[ReadKey]:
        """What others may have read of these units."""
        keys: set[ReadKey] = set()
        for unit in units:
            owner = unit.owner
            keys |= {("unit", unit.identity), ("all",), ("called", "*")}
            if owner is None:
                keys |= {("binding", name) for name in unit.bound_names}
                if any(isinstance(node, (ast.If, ast.Assert)) for node in unit.nodes):
                    keys.add(("exits",))
            else:
                keys |= {("member", owner.identity, name) for name in unit.bound_names}
                keys |= {("class", owner.identity), ("unit", owner.identity)}
                keys |= {("attribute", owner.identity, name) for name in unit.attributes}
            keys |= {("loads", node.id) for node in unit.by_kind.get(ast.Name, ())}  # type: ignore[attr-defined]
            keys |= {("called", name) for name in unit.calls()}
            if isinstance(unit, ClassUnit):
                keys |= self._keys_of(unit.members)
        return keys

    def _check(self, affected: set[ReadKey]) -> None:
        """Check every unit that has no result, or whose result read something in ``affected``."""
        module = self.module
        assert module is not None
        self._invalidate(affected)
        facts = self._facts_fingerprint(module, affected)
        if facts != self._facts_seen:
            self._facts_seen = facts
            self._invalidate({("facts",)})
        dispatcher, active = self._analyzer.dispatcher, self._active
        for unit in list(module.all_units()):
            if "rules" not in unit.results:
                with module.reading() as reads:
                    found = list(dispatcher.chunk(unit, module, active))
                self._store(unit, "rules", found, reads)
            if "classes" not in unit.results:
                with module.reading() as reads:
                    found = list(dispatcher.classes(unit, module, active))
                    if isinstance(unit, ClassUnit):
                        reads.add(("class", unit.identity))
                self._store(unit, "classes", found, reads)
        self._module_findings = list(dispatcher.whole(module, active))

    def _invalidate(self, affected: set[ReadKey]) -> None:
        for key in affected:
            for unit in list(self._readers.get(key, ())):
                for task in ("rules", "classes"):
                    result = unit.results.get(task)
                    if result is not None and key in result.reads:
                        del unit.results[task]
                        for other in result.reads:
                            if not any(
                                other in rest.reads
                                for name in ("rules", "classes")
                                if (rest := unit.results.get(name)) is not None
                            ):
                                self._readers[other].discard(unit)

    def _facts_fingerprint(self, module: Module, affected: set[ReadKey]) -> object:
        """Changes whenever `Module.facts` would, and when a unit that contributes to them is edited."""
        seen = []
        for unit in module.all_units():
            cached = unit.results.get("facts")
            if cached is not None and not affected.isdisjoint(cached[1]):
                del unit.results["facts"]
            facts = module.facts_of(unit)
            if facts.is_entry or any(
                (
                    facts.launcher_evidence, facts.accelerator, facts.trainers, facts.data_parallel,
                    facts.distributed_data_parallel, facts.visible_devices, facts.imports,
                )
            ):  # fmt: skip
                # Imports alone do not depend on where the unit's nodes stand.
                contributes = facts.is_entry or facts.trainers or facts.launcher_evidence
                others = (
                    facts.accelerator or facts.data_parallel or facts.visible_devices
                    or facts.distributed_data_parallel
                )  # fmt: skip
                identity = unit.identity if contributes or others else 0
                seen.append((identity, facts.is_entry, tuple(sorted(facts.imports))))
        return tuple(seen)

    def _store(self, unit: Unit, task: str, found: list[Finding], reads: set[ReadKey]) -> None:
        module = self.module
        assert module is not None
        anchors = []
        if isinstance(unit, ClassUnit) or any(finding.related for finding in found):
            units = list(module.all_units())
            for finding in found:
                own = [item.range for item in finding.related if item.path is None]
                for place in (finding.range, *own):
                    holder = _holding(units, place.start.line) or unit
                    anchors.append((holder, holder.start))
        result = _Result(found, frozenset(reads), unit.start, anchors)
        unit.results[task] = result
        for key in reads:
            self._readers[key].add(unit)

    def _collect(self) -> tuple[Finding, ...]:
        if self.module is None:
            found: list[Finding] = []
        else:
            found = list(self._module_findings)
            for unit in self.module.all_units():
                for task in ("rules", "classes"):
                    result: _Result | None = unit.results.get(task)
                    if result is not None and result.findings:
                        found += self._where_they_stand(unit, result)
        found = sorted(set(found), key=lambda item: (item.range, item.code, item.message.en))
        checked = self._analyzer.codes_checked_in(self.path)
        found = [item for item in found if item.code in checked]
        return apply_suppressions(self._source.text, found, checked)

    def _where_they_stand(self, unit: Unit, result: _Result) -> list[Finding]:
        """The findings with the lines their units have now."""
        shift = unit.start - result.start
        if not shift and all(holder.start == start for holder, start in result.anchors):
            return result.findings
        anchors = iter(result.anchors)
        moved = []
        for finding in result.findings:
            # A class rule's finding may stand in a member, which moves without its class.
            holder, start = next(anchors, (unit, result.start))
            shift = holder.start - start
            related = []
            for item in finding.related:
                if item.path is None:
                    holder, start = next(anchors)
                    related.append(replace(item, range=_moved(item.range, holder.start - start)))
                else:
                    related.append(item)
            moved.append(
                replace(finding, range=_moved(finding.range, shift), related=tuple(related))
            )
        return moved


class _Merge:
    """Takes over old units for new ones with the same text."""

    def __init__(self, old: list[Unit]) -> None:
        self._old: dict[tuple[bool, str], deque[Unit]] = defaultdict(deque)
        for unit in old:
            self._old[isinstance(unit, ClassUnit), unit.text].append(unit)
        self.added: list[Unit] = []
        self.removed: list[Unit] = []
        self.added_members: list[Unit] = []
        self.replaced_members: list[Unit] = []

    def merged(self, new: list[Unit]) -> list[Unit]:
        units = [self._take(unit) for unit in new]
        self.removed = [unit for queue in self._old.values() for unit in queue]
        return units

    def _take(self, new: Unit) -> Unit:
        queue = self._old.get((isinstance(new, ClassUnit), new.text))
        if not queue:
            self.added.append(new)
            return new
        old = queue.popleft()
        old.start, old.end = new.start, new.end
        if isinstance(old, ClassUnit) and isinstance(new, ClassUnit):
            self._merge_members(old, new)
        return old

    def _merge_members(self, old: ClassUnit, new: ClassUnit) -> None:
        available: dict[str, deque[Unit]] = defaultdict(deque)
        for member in old.members:
            available[member.text].append(member)
        members = []
        for member in new.members:
            queue = available.get(member.text)
            if queue:
                kept = queue.popleft()
                kept.start, kept.end = member.start, member.end
                members.append(kept)
            else:
                member.owner = old
                self.added_members.append(member)
                members.append(member)
        self.replaced_members += [unit for queue in available.values() for unit in queue]
        old.members = members
        old.header_end = new.header_end
        old.node.body = [node for member in members for node in member.nodes]


def _parse_unit(text: str, unit: Unit) -> list[ast.stmt] | None:
    """The statements of a unit's text with their line numbers in the file; None when it is not intact alone."""
    nested = unit.owner is not None
    # Empty lines in front give every node its line in the file, ten times cheaper than ast.increment_lineno.
    above = "\n" * (unit.start - 1) + "if 1:\n" if nested else "\n" * unit.start
    tree = parse(above + text)
    if tree is None or not tree.body:
        return None
    nodes = tree.body
    if nested:
        if len(nodes) != 1 or not isinstance(nodes[0], ast.If) or nodes[0].orelse:
            return None
        nodes = nodes[0].body
    if any(node.col_offset != unit.indent for node in nodes[:1]):
        return None
    if len(nodes) != len(unit.nodes):
        return None
    return nodes


def _same_definition(old: Unit, new: Unit) -> bool:
    """Whether both are one function of the same name: who only names it need not be checked again."""
    first, second = old.nodes[0], new.nodes[0]
    return (
        old.owner is None
        and old.is_definition
        and new.is_definition
        and isinstance(first, (ast.FunctionDef, ast.AsyncFunctionDef))
        and first.__class__ is second.__class__
        and first.name == second.name
    )


def _holding(units: list[Unit], line: int) -> Unit | None:
    found = None
    for unit in units:
        if unit.start <= line <= unit.end and (found is None or unit.owner is not None):
            found = unit
    return found


def _moved(place: Range, lines: int) -> Range:
    if not lines:
        return place
    return Range(
        Position(place.start.line + lines, place.start.column),
        Position(place.end.line + lines, place.end.column),
    )
