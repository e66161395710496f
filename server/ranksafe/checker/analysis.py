"""Findings of a file, kept up to date while it is edited.

`DocumentAnalysis` holds the file's units (see `ranksafe.semantics.units`). An edit inside one unit parses that unit
alone; any other edit parses the file and takes over every unit whose text is the same. Then only those results are
computed again that read something which changed. `DocumentAnalysis.settle` brings the result to what a fresh analysis
of the same text gives; editors call it when the user pauses.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ranksafe.checker.configuration import Configuration
from ranksafe.checker.dependencies import (
    ANSWERS,
    FACTS,
    drop_stale_answers,
    facts_fingerprint,
    keys_of,
    keys_of_name,
)
from ranksafe.checker.dispatch import Active, Dispatcher
from ranksafe.checker.finding import Finding
from ranksafe.checker.kept_findings import moved_below
from ranksafe.checker.merging import Merge, parse_unit, same_definition, with_statement_parsed
from ranksafe.checker.room_for_calls import with_room_for_calls
from ranksafe.checker.suppression import apply_suppressions
from ranksafe.checker.suspects import Suspects, statement_around
from ranksafe.checker.unit_results import UnitResults, findings_in
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.pausing import pause_point
from ranksafe.semantics.facts import OF_SEVERAL_PROCESSES
from ranksafe.semantics.module import REST, Module, ReadKey
from ranksafe.semantics.units import ClassUnit, Unit, units_of
from ranksafe.semantics.walking import FUNCTIONS
from ranksafe.source.parsing import LONGEST_STATEMENT, has_too_long_statement
from ranksafe.source.recovery import Parsed, parse, parse_tolerantly
from ranksafe.source.text import SourceText

if TYPE_CHECKING:
    from ranksafe.checker.registry import Registry
    from ranksafe.semantics.cross_file import Project

Status = Literal["complete", "partial", "stale"]

RELEVANT = re.compile(
    r"\b(?:torch|torchvision|transformers|accelerate|trl|jax|lightning|pytorch_lightning|deepspeed|adapters|peft|flax"
    r"|local_rank)\b"
)
"""A file that mentions none of these libraries, nor the option of torch's launchers, cannot have a finding and is not
parsed."""


_LARGE_PROJECT = 500
"""Files."""
_MOST_LINES = 25_000
_MOST_CHARACTERS = 1_500_000
"""Of a text that is checked: twice as many as the longest that people write, and seconds. Others are made by
programs."""
WHOLE = "**"
"""Stands in `DocumentAnalysis.given_up` for a text that is too large to be checked."""
LEFT_OUT = frozenset({WHOLE, REST})
"""What a user should know who looks for findings in a file."""


def given_up(function: str) -> Translated:
    """The sentence that rank flow did not follow a function; an empty name: the statements outside functions. `WHOLE`
    and `REST`: that all of the file, or its end, was left out."""
    if function == WHOLE:
        return Translated(
            f"too large to be checked: more than {_MOST_LINES} lines or {_MOST_CHARACTERS} characters, or a statement"
            f" of more than {LONGEST_STATEMENT}",
            f"文件过大，未检查：超过 {_MOST_LINES} 行或 {_MOST_CHARACTERS} 个字符，"
            f"或单条语句超过 {LONGEST_STATEMENT} 个字符",
        )
    if function == REST:
        return Translated(
            "too large: the collectives of the functions at its end are not compared between ranks",
            "文件过大：其末尾函数的集合通信未在 rank 之间作比较",
        )
    if not function:
        return Translated(
            "the statements outside functions do too much to be followed: the ranks' collectives are not compared",
            "函数之外的语句过多，未逐 rank 跟踪：其集合通信未作比较",
        )
    return Translated(
        f"`{function}` does too much to be followed: the ranks' collectives are not compared",
        f"`{function}` 内容过多，未逐 rank 跟踪：其集合通信未作比较",
    )


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

    def active_in(self, path: Path | None, text: str) -> Active | None:
        """The rules that run on a text; None when it can have no finding: it names no library, or no rule runs."""
        if RELEVANT.search(text) is None:
            return None

        def is_trained() -> bool:
            project = self.project
            if project is None or path is None:
                return False
            name = project.module_name(path)
            return project.trains_with_trainer(name) or project.wraps_data_parallel(name)

        def is_used() -> bool:
            project = self.project
            if project is None or path is None or project.number_of_files() > _LARGE_PROJECT:
                return False
            return any(project.users_mention(path, word) for word in OF_SEVERAL_PROCESSES)

        active = Active(self.dispatcher, self.launch, text, is_trained, is_used)
        return active if active.wants_any else None

    def rules_checked_in(self, path: Path | None) -> frozenset[str]:
        """Codes and names of the rules that speak in a file; ``per-file-ignores`` considered."""
        return frozenset(
            word
            for metadata in self.enabled
            if path is None or not self.configuration.ignored_in(path, metadata)
            for word in (metadata.code, metadata.name)
        )

    @with_room_for_calls
    def open(self, path: Path | None, text: str) -> DocumentAnalysis:
        """Analyse a file from nothing."""
        return DocumentAnalysis(self, path, text)


class DocumentAnalysis:
    """One file under edit."""

    def __init__(self, analyzer: Analyzer, path: Path | None, text: str) -> None:
        self._analyzer = analyzer
        self.path = path
        self.status: Status = "complete"
        self.blanked: frozenset[int] = frozenset()
        """0-based lines left out because they are broken."""
        self._source = SourceText(text)
        self._lines_parsed: list[str] | None = None
        self._active: Active | None = None
        self._results = UnitResults()
        self._module_reads: frozenset[ReadKey] = frozenset()
        self._found_at_rest: list[Finding] = []
        self._is_typing = False
        self._rest_is_due = False
        """The text was edited since the rules that wait for a pause ran."""
        self._findings: tuple[Finding, ...] | None = None
        self._facts_seen: object = None
        self.module: Module | None = None
        self._build([])

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
        return {} if self._active is None else dict(self._active.failed)

    @property
    def given_up(self) -> tuple[str, ...]:
        """Functions that do too much to be followed, so that rank flow has nothing to say of them; an empty name:
        the statements outside functions."""
        if _is_too_large(self._source):
            return (WHOLE,) if RELEVANT.search(self._source.text) else ()
        return () if self.module is None else tuple(sorted(self.module.given_up))

    @property
    def needs_settling(self) -> bool:
        """Whether `settle` may change the findings."""
        return self.status != "complete" or self._rest_is_due

    @property
    def asked_project(self) -> bool:
        """Whether the findings depend on other files of the project too."""
        return self.module is not None and self.module.asked_project

    @property
    def source(self) -> SourceText:
        """The text of the file."""
        return self._source

    @property
    def text_analysed(self) -> str:
        """The text that the findings are those of: with a filler in place of the broken lines, if there are any."""
        if self.status == "complete" or self._lines_parsed is None:
            return self._source.text
        return "".join(self._lines_parsed)

    @with_room_for_calls
    def change(
        self, text: str, first_line: int, last_line: int, lines: list[str] | None = None
    ) -> None:
        """Take over edited text.

        ``first_line`` and ``last_line`` are the 0-based lines of the text before that the edit touched, both
        included; for several edits at once their hull. ``lines``: the text's lines as
        `ranksafe.source.text.split_lines` gives them, where the caller has them; the list is kept.
        """
        before = self._source
        self._source = SourceText(text, lines)
        self._findings = None
        added = len(self._source.lines) - len(before.lines)
        self._is_typing = True
        try:
            self._take_over_edit(first_line, last_line, added, text)
        finally:
            self._is_typing = False
        self._found_at_rest = moved_below(self._found_at_rest, first_line, last_line, added)
        self._rest_is_due = True

    def _take_over_edit(self, first_line: int, last_line: int, added: int, text: str) -> None:
        is_usual = self.status != "stale" and not _is_too_large(self._source)
        if self.module is not None and is_usual:
            self._note_words("".join(self._source.lines[first_line : last_line + added + 1]))
            if self._change_one_unit(first_line, last_line, added):
                return
        around = statement_around(self.module, first_line, last_line)
        suspects = Suspects(first_line, last_line, self.blanked, around)
        self._build(suspects.after(text, added))

    @with_room_for_calls
    def settle(self) -> bool:
        """Make the result what a fresh analysis gives, where the text parses; says whether the findings changed.

        Text that does not parse keeps the result it has: what was typed last is known to be what is broken, which a
        fresh analysis could only guess.
        """
        before = self.findings
        self._findings = None
        if self.module is None or self.status == "stale":
            self._build([])
        else:
            self._leave_out_rules()
            if self.status == "partial" and parse(self._source.text) is not None:
                self._build([])
        if self._rest_is_due and self.module is not None and self.status != "stale":
            self._run_at_rest(self.module)
        return self.findings != before

    def _leave_out_rules(self) -> None:
        """Words that were typed and taken away again may have let rules run that would not run now."""
        active = self._analyzer.active_in(self.path, self._source.text)
        if active is None:
            self._drop()
        elif self.module is not None and active.codes < self._rules.codes:
            self._active = active
            for unit in self.module.all_units():
                self._forget(unit)
            self._check(set())

    def close(self) -> None:
        """Free what was needed to find the findings; nothing can be asked any more."""
        if self.module is not None:
            self.module.release()

    # -- building

    def _drop(self) -> None:
        self.module = None
        self.status = "complete"
        self.blanked = frozenset()
        self._results = UnitResults()
        self._module_findings: list[Finding] = []
        self._found_at_rest = []
        self._findings = None
        self._active = None

    def _build(self, suspects: list[frozenset[int]]) -> None:
        """Parse the whole file, keep the units that are the same, check the rest."""
        text = self._source.text
        active = None
        if not _is_too_large(self._source):
            active = self._analyzer.active_in(self.path, text)
        if active is None:
            self._drop()
            return
        parsed = parse_tolerantly(text, suspects)
        if parsed is None:
            if self.module is None:
                self._drop()
            self.status = "stale"
            return
        if self.module is None:
            self._drop()
            self._active = active
            self.module = Module(
                self._source,
                name=self._module_name(),
                path=None if self.path is None else str(self.path),
                project=self._analyzer.project,
            )
        self._note_words(text)
        self.status = "partial" if parsed.blanked else "complete"
        self.blanked = parsed.blanked
        self._lines_parsed = parsed.lines
        self._take_over(parsed)

    def _module_name(self) -> str:
        if self.path is None:
            return "module"
        if self._analyzer.project is not None:
            return self._analyzer.project.module_name(self.path)
        return self.path.stem

    def _note_words(self, new: str) -> None:
        if self._rules.text_changed(self._source.text, new) and self.module is not None:
            for unit in self.module.all_units():
                self._forget(unit)

    def _take_over(self, parsed: Parsed) -> None:
        module = self.module
        assert module is not None
        merge = Merge(module.units)
        parsed_text = self._source if parsed.lines is None else SourceText("", parsed.lines)
        units = merge.merged(units_of(parsed.tree, parsed_text))
        affected: set[ReadKey] = set()
        is_edit = bool(module.units)
        if is_edit:
            affected = keys_of([*merge.removed, *merge.replaced_members])
        for unit in (*merge.removed, *merge.replaced_members):
            self._forget(unit)
            module.remove_unit(unit)
        module.units = units
        module.tree.body = [node for unit in units for node in unit.nodes]
        module.text_changed(self._source)
        for unit in (*merge.added, *merge.added_members):
            pause_point()
            module.add_unit(unit)
        if is_edit:
            affected |= keys_of([*merge.added, *merge.added_members])
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
        fresh = self._parsed_again(unit, first, last, added, text)
        if fresh is None or fresh.start != unit.start or fresh.end != unit.end + added:
            return False
        before = keys_of([unit])
        self._forget(unit)
        module.remove_unit(unit)
        self._splice(unit, fresh)
        self._move_below(unit.end, added, fresh)
        module.text_changed(self._source)
        module.add_unit(fresh)
        self.status, self.blanked = "complete", frozenset()
        affected = before | keys_of([fresh])
        if same_definition(unit, fresh):
            affected -= keys_of_name(fresh)
        self._check(affected)
        return True

    def _parsed_again(
        self, unit: Unit, first: int, last: int, added: int, text: str
    ) -> Unit | None:
        if not added and not self.blanked:
            nodes = with_statement_parsed(unit, first, last, self._source.lines)
            if nodes is not None:
                return Unit(nodes, unit.owner, text).moved(unit.start, unit.end)
        nodes = parse_unit(text, unit)
        if nodes is None or any(
            isinstance(node, ast.ClassDef) and unit.owner is None for node in nodes
        ):
            return None
        return Unit(nodes, unit.owner, text)

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

    @property
    def _rules(self) -> Active:
        assert self._active is not None
        return self._active

    def _forget(self, unit: Unit) -> None:
        self._results.forget(unit)
        for answer in ANSWERS:
            unit.results.pop(answer, None)

    def _check(self, affected: set[ReadKey]) -> None:
        """Check every unit that has no result, or whose result read something in ``affected``."""
        module = self.module
        assert module is not None
        self._results.invalidate(affected)
        drop_stale_answers(module, affected)
        facts: object = None
        if self._results.read(FACTS):
            facts = facts_fingerprint(module)
            if facts != self._facts_seen:
                self._results.invalidate({FACTS})
        for unit in list(module.all_units()):
            if "rules" not in unit.results:
                self._check_unit(unit, module)
            if "classes" not in unit.results:
                self._check_classes(unit, module)
        self._module_findings = list(self._analyzer.dispatcher.whole(module, self._rules))
        if not self._is_typing:
            self._run_at_rest(module)
        if facts is None and self._results.read(FACTS):
            facts = facts_fingerprint(module)
        self._facts_seen = facts

    def _run_at_rest(self, module: Module) -> None:
        self._found_at_rest = list(self._analyzer.dispatcher.at_rest(module, self._rules))
        self._rest_is_due = False

    def _check_unit(self, unit: Unit, module: Module) -> None:
        with module.reading() as reads:
            found = list(self._analyzer.dispatcher.chunk(unit, module, self._rules))
        self._results.store(module, unit, "rules", found, reads)

    def _check_classes(self, unit: Unit, module: Module) -> None:
        dispatcher = self._analyzer.dispatcher
        if not unit.defines_class or not self._rules.class_rules:
            self._results.store_nothing(unit, "classes")
            return
        with module.reading() as reads:
            found = list(dispatcher.classes(unit, module, self._rules))
            if isinstance(unit, ClassUnit):
                reads.add(("class", unit.identity))
        self._results.store(module, unit, "classes", found, reads)

    def _collect(self) -> tuple[Finding, ...]:
        if self.module is None:
            found: list[Finding] = []
        else:
            found = [*self._module_findings, *self._found_at_rest]
            found += findings_in(self.module.all_units())
        checked = self._analyzer.rules_checked_in(self.path)
        unique: dict[Finding, None] = {}
        for item in found:
            pause_point()
            if item.code in checked:
                unique[item] = None
        found = sorted(unique, key=_order)
        pause_point()
        reported = apply_suppressions(self._source.text, found, checked)
        return tuple(item for item in reported if not self._is_in_remainder(item))

    def _is_in_remainder(self, finding: Finding) -> bool:
        """Whether a finding lies in a function of a script that nothing calls: it is true of no run."""
        module, line = self.module, finding.range.start.line
        if module is None:
            return False
        unit = next((unit for unit in module.units if unit.start <= line <= unit.end), None)
        functions = () if unit is None else unit.nodes
        return any(
            isinstance(node, FUNCTIONS) and not node.decorator_list and module.is_idle(node.name)
            for node in functions
        )


def _order(finding: Finding) -> tuple[int, int, int, int, str, str]:
    start, end = finding.range.start, finding.range.end
    return start.line, start.column, end.line, end.column, finding.code, finding.message.en


def _is_too_large(source: SourceText) -> bool:
    return (
        len(source.lines) > _MOST_LINES
        or len(source.text) > _MOST_CHARACTERS
        or has_too_long_statement(source.text)
    )
