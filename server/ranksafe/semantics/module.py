"""What one file means: the queries that rules ask.

A query that looks outside the unit being checked notes what it read (`Module.reading`), so that a cached result is
known to hold exactly as long as the things it read stay the same. Rules never see this; they just ask.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ranksafe.semantics.dictionaries import Dictionaries
from ranksafe.semantics.facts import ModuleFacts, UnitFacts, facts_of_module, facts_of_unit
from ranksafe.semantics.flow import Flow
from ranksafe.semantics.guards import Guard, GuardKind, Guards
from ranksafe.semantics.libraries import canonical, is_library
from ranksafe.semantics.names import Names
from ranksafe.semantics.rank_flow.analysis import RankFlow
from ranksafe.semantics.rank_flow.issues import Issue
from ranksafe.semantics.rank_flow.operations import may_wrap
from ranksafe.semantics.structure import Function, ModuleStructure
from ranksafe.semantics.types import Types
from ranksafe.semantics.unit_store import ReadKey
from ranksafe.semantics.units import Unit, callee_name
from ranksafe.semantics.values import Value, Values
from ranksafe.semantics.walking import FUNCTIONS
from ranksafe.source.recovery import parse_tolerantly
from ranksafe.source.text import SourceText

if TYPE_CHECKING:
    from ranksafe.semantics.project.protocol import Project

__all__ = ["Guard", "GuardKind", "Module", "ModuleFacts", "ReadKey", "Value", "Values"]


class Module(ModuleStructure):
    """Queries about one file."""

    def __init__(
        self,
        source: SourceText,
        name: str = "module",
        path: str | None = None,
        project: Project | None = None,
    ) -> None:
        super().__init__(source)
        self.name = name
        """Dotted module name as far as the project knows it (``train``, ``package.models``)."""
        self.path = path
        self.project = project
        self.is_package = path is not None and path.endswith("__init__.py")
        self.names = Names(self)
        self.flow = Flow(self)
        self.dictionaries = Dictionaries(self)
        self.guards_of = Guards(self)
        self.types = Types(self)
        self._facts: ModuleFacts | None = None
        self._rank_issues: tuple[int | None, list[Issue]] | None = None
        self._may_wrap: bool | None = None
        self._wrapped_before: bool | None = None
        self._other_files: dict[Path, tuple[str, Module | None]] = {}
        self.asked_project = False
        """Whether an answer came from other files: then it holds only as long as those stay the same."""

    def text_changed(self, source: SourceText) -> None:
        """Drop what was computed from the text before."""
        super().text_changed(source)
        self._facts = None
        self._rank_issues = None
        if self._may_wrap is not None:
            self._wrapped_before, self._may_wrap = self._may_wrap, None

    def release(self) -> None:
        """Let go of all trees, those of other files included; nothing can be asked any more.

        What is known of a file refers to the file, so that it would stay until the next garbage collection.
        """
        others = [other for _, other in self._other_files.values() if other is not None]
        for module in (self, *others):
            for unit in module.all_units():
                unit.owner = None
                unit.results.clear()
            vars(module).clear()

    # -- structure

    def guards(self, node: ast.AST) -> tuple[Guard, ...]:
        """Conditions around ``node`` up to its function or the module, innermost first: branches, conditional
        expressions, ``and``/``or``, early exits before it (``if not c: return``) and assertions."""
        return self.guards_of.around(node)

    def note_early_exits(self) -> None:
        """Used by the guards: an answer depends on the module-level branches and assertions before a statement."""
        self._note("exits")

    # -- names

    def canonical(self, name: str) -> str:
        """The public name for an alias of a library's or the project's name."""
        public = canonical(name)
        if self.project is not None and not is_library(public):
            self._note_project(public)
            return self.project.resolve(public)
        return public

    def qualified_name(self, node: ast.expr) -> str | None:
        """Canonical dotted name of what an expression refers to, or None.

        ``F.relu`` -> ``torch.nn.functional.relu``; ``transformers.trainer.Trainer`` -> ``transformers.Trainer``;
        builtins -> ``builtins.len``; a class of this file -> ``<module name>.Class``. Aliases and re-assignments are
        followed. A call has no name; see `type_of`.
        """
        return self.names.qualified(node)

    def type_of(self, node: ast.expr) -> str | None:
        """Canonical class of the object an expression evaluates to, None when unknown: ``Trainer(...)`` ->
        ``transformers.Trainer``, ``AutoModelForCausalLM.from_pretrained(...)`` -> ``transformers.PreTrainedModel``,
        names and ``self.x`` assigned from those, ``self`` in a method, annotated parameters."""
        return self.types.of(node)

    def is_subclass(self, name: str | None, *ancestors: str) -> bool:
        """Whether class ``name`` (canonical) is, or derives from, one of ``ancestors`` (canonical), through the file,
        the project and the library table (``trl.SFTTrainer`` derives from ``transformers.Trainer``)."""
        return self.types.is_subclass(name, frozenset(ancestors))

    def resolve_dotted(self, text: str) -> str | None:
        """Canonical name of dotted text as if it stood at module level (for string annotations)."""
        head, _, rest = text.partition(".")
        bindings = self.module_bindings(head)
        if not bindings:
            return None
        base = self.names.of_binding(bindings[-1])
        if base is None:
            return None
        return self.canonical(f"{base}.{rest}") if rest else base

    def absolute_import(self, module: str | None, level: int) -> str:
        """Dotted name of an import's module, relative ones resolved against this file's."""
        if not level:
            return self.imported_module(module or "")
        parts = self.name.split(".")
        keep = len(parts) - level + (1 if self.is_package else 0)
        base = parts[: max(keep, 0)]
        return ".".join([*base, module] if module else base)

    def imported_module(self, name: str) -> str:
        """The project's name for an absolutely imported module; a library's stays as it is."""
        if self.project is None or is_library(name):
            return name
        self._note_project(name)
        return self.project.import_name(self.path, name)

    def star_imports(self) -> list[str]:
        """Modules of ``from m import *`` at module level."""
        modules = []
        for alias in self.module_bindings("*"):
            statement = self.parent(alias)
            if isinstance(statement, ast.ImportFrom):
                modules.append(self.absolute_import(statement.module, statement.level))
        return modules

    def may_stand_for_another(self, name: str) -> bool:
        """Whether a called name may mean something that is called otherwise: a renamed import, an alias, a subclass,
        here or (capitalised, as classes are) in another file of the project."""
        if self.project is not None and name[:1].isupper():
            return True
        return bool(self.original_names(name))

    def original_names(self, name: str) -> frozenset[str]:
        """Last segments of what a module-level name stands for, when that is called otherwise: the original name of
        a renamed import or alias, and the names of a local class's bases."""
        if name not in self._units_binding:
            self._note("binding", name)
            return frozenset()
        return self._originals(name, 0)

    def _originals(self, name: str, depth: int) -> frozenset[str]:
        found: set[str] = set()
        for binding in self.module_bindings(name):
            sources: list[str] = []
            if isinstance(binding, ast.alias) and binding.asname not in (None, binding.name):
                sources = [binding.name.rpartition(".")[2]]
            elif isinstance(binding, ast.Name):
                value = self.flow.assigned_value(binding)
                sources = [last] if (last := _last_segment(value)) else []
            elif isinstance(binding, ast.ClassDef):
                sources = [last for base in binding.bases if (last := _last_segment(base))]
            for source in sources:
                if source not in found and depth < 4:
                    found |= {source} | self._originals(source, depth + 1)
        return frozenset(found)

    # -- classes

    def class_name(self, cls: ast.ClassDef) -> str:
        """Canonical name of a class of this file."""
        return self.names.of_binding(cls) or cls.name

    def class_named(self, name: str | None) -> ast.ClassDef | None:
        """The definition of a class of this file by canonical name (classes inside functions are not found)."""
        prefix = f"{self.name}."
        if name is None or not name.startswith(prefix):
            return None
        parts = name[len(prefix) :].split(".")
        bindings: Iterable[ast.AST] = self.module_bindings(parts[0])
        for index in range(len(parts)):
            cls = next((item for item in bindings if isinstance(item, ast.ClassDef)), None)
            if cls is None:
                return None
            if index == len(parts) - 1:
                return cls
            bindings = [
                item
                for item in self._body_of(cls)
                if getattr(item, "name", None) == parts[index + 1]
            ]
        return None

    def methods_reached_from(self, cls: ast.ClassDef, start: str) -> list[Function]:
        """``start`` and the methods and properties of the same class that it calls or reads through ``self``,
        directly or through each other."""
        reached: list[Function] = []
        pending = [start]
        seen: set[str] = set()
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            method = self.method(cls, name)
            if method is None:
                continue
            reached.append(method)
            for node in self.nodes(ast.Attribute, inside=method):
                assert isinstance(node, ast.Attribute)
                if self.class_of_self(node.value) is cls:
                    pending.append(node.attr)
        return reached

    # -- functions

    def function_called(self, call: ast.Call) -> Function | None:
        """The function of this file that a call runs, when there is just one it can be."""
        function = call.func
        if isinstance(function, ast.Name):
            scope, bindings = self.names.bindings(function)
            if scope is None or len(bindings) != 1 or not isinstance(bindings[0], FUNCTIONS):
                return None
            return self._opened(bindings[0])
        if isinstance(function, ast.Attribute):
            cls = self.class_of_self(function.value)
            if cls is not None:
                method = self.method(cls, function.attr)
                return None if method is None else self._opened(method)
        return None

    def _opened(self, function: Function) -> Function:
        self._note_unit_of(function)
        return function

    def _note_project(self, name: str) -> None:
        self.asked_project = True
        self._note("project", name)

    # -- values

    def values(self, node: ast.expr) -> Values:
        """What an expression may be: through assignments (reaching definitions, with the conditions on them),
        conditional expressions, dictionary items, ``self.x``, functions' returns, imported constants."""
        return self.flow.values(node)

    def argument(self, call: ast.Call, name: str, position: int | None = None) -> Values | None:
        """The value of an argument, through keywords, position (0-based) and ``**kw`` dictionaries; None when it is
        certainly not given. ``complete`` is False when a ``**kw`` is not understood."""
        return self.dictionaries.argument(call, name, position)

    def argument_node(
        self, call: ast.Call, name: str, position: int | None = None
    ) -> ast.expr | None:
        """The argument's expression as written in the call, or its value in the ``**kw`` dictionary."""
        return self.dictionaries.argument_node(call, name, position)

    def dictionary_entry(self, node: ast.expr, key: str) -> Values | None:
        """Values under a string key of a dictionary expression; None: certainly not there."""
        return self.dictionaries.entry(node, key)

    def uses_of(self, assigned: ast.expr) -> Sequence[ast.Name | ast.Attribute]:
        """Where the object made by an expression is read again, when it is assigned to a name (same scope) or to
        ``self.x`` (same class)."""
        parent = self.parent(assigned)
        targets: list[ast.expr] = []
        if isinstance(parent, ast.Assign):
            targets = parent.targets
        elif isinstance(parent, (ast.AnnAssign, ast.NamedExpr)):
            targets = [parent.target]
        found: list[ast.Name | ast.Attribute] = []
        for target in targets:
            if isinstance(target, ast.Name):
                found += [
                    use
                    for use in self.loads_of_same_name(target)
                    if assigned in self.flow.assigned_values(use)
                ]
            elif isinstance(target, ast.Attribute):
                cls = self.class_of_self(target.value)
                if cls is not None:
                    found += self.attribute_loads(cls, target.attr)
        return found

    def loads_of_same_name(self, name: ast.Name) -> list[ast.Name]:
        """Reads of the variable that ``name`` belongs to, in source order, inner functions included."""
        scope, _ = self.names.bindings(name)
        if scope is None:
            return []
        if scope.kind == "module":
            self._note("loads", name.id)
            nodes: Iterable[ast.AST] = (
                node for unit in self.all_units() for node in unit.by_kind.get(ast.Name, ())
            )
        else:
            nodes = ast.walk(scope.node)
        found = [
            node
            for node in nodes
            if isinstance(node, ast.Name)
            and node.id == name.id
            and (isinstance(node.ctx, ast.Load))
            and self.names.bindings(node)[0] is scope
        ]
        found.sort(key=self.order_of)
        return found

    # -- finding nodes

    def calls(self, *names: str, inside: ast.AST | None = None) -> Iterator[ast.Call]:
        """Calls whose callee's canonical name is one of ``names`` or, for a class, a subclass of one; in source
        order."""
        if inside is not None:
            candidates = [
                node for node in self.nodes(ast.Call, inside) if isinstance(node, ast.Call)
            ]
        else:
            candidates = self._candidates({name.rpartition(".")[2] for name in names})
        found = [
            call
            for call in candidates
            if (called := self.qualified_name(call.func)) is not None
            and (called in names or self.is_subclass(called, *names))
        ]
        found.sort(key=self.order_of)
        return iter(found)

    def _candidates(self, endings: set[str]) -> list[ast.Call]:
        self._note("called", "*")
        return [
            call
            for unit in self.all_units()
            for written, calls in unit.calls().items()
            if written in endings
            or any(written.endswith(ending) for ending in endings)
            or self.may_stand_for_another(written)
            for call in calls
        ]

    def method_calls(
        self, method: str, *types: str, inside: ast.AST | None = None
    ) -> Iterator[ast.Call]:
        """Calls ``x.method(...)`` with x an instance of (a subclass of) one of ``types``, in source order."""
        if inside is None:
            candidates = self.calls_written(method)
        else:
            candidates = [
                node
                for node in self.nodes(ast.Call, inside)
                if isinstance(node, ast.Call) and callee_name(node) == method
            ]
        for call in candidates:
            if isinstance(call.func, ast.Attribute) and self.is_subclass(
                self.type_of(call.func.value), *types
            ):
                yield call

    # -- rank flow

    @property
    def may_wrap_models(self) -> bool:
        """Whether the file names something that wraps models for several ranks."""
        self._note("wrappers")
        if self._may_wrap is None:
            self._may_wrap = may_wrap(self.source.text)
        return self._may_wrap

    def wrapping_changed(self) -> bool:
        """Whether `may_wrap_models` had another answer for the text before, if anybody asked."""
        before, self._wrapped_before = self._wrapped_before, None
        return before is not None and before != self.may_wrap_models

    def rank_issues(self, ranks: int | None = None) -> list[Issue]:
        """What goes wrong between the ranks in this file; see `ranksafe.semantics.rank_flow`.

        ``ranks``: how many there will be, where that is known.
        """
        if self._rank_issues is None or self._rank_issues[0] != ranks:
            self._rank_issues = (ranks, RankFlow(self, ranks).issues())
        return self._rank_issues[1]

    # -- facts

    @property
    def facts(self) -> ModuleFacts:
        """What the file and the project show about launch and training."""
        self._note("facts")
        if self._facts is None:
            self._facts = self._collect_facts()
        return self._facts

    def facts_of(self, unit: Unit) -> UnitFacts:
        """One unit's part of the facts, computed once per version of what it read."""
        found = unit.results.get("facts")
        if found is None:
            with self.reading() as reads:
                found = (facts_of_unit(self, unit), frozenset(reads))
            unit.results["facts"] = found
        facts: UnitFacts = found[0]
        return facts

    def _collect_facts(self) -> ModuleFacts:
        outer, self._reads = self._reads, None
        try:
            parts = [self.facts_of(unit) for unit in self.all_units()]
            if self.project is not None and any(unit.defines_class for unit in self.units):
                self.asked_project = True
                return facts_of_module(self, parts, self.project)
            return facts_of_module(self, parts)
        finally:
            self._reads = outer

    # -- the project

    def project_export(self, origin: str, name: str) -> str | None:
        """What ``from origin import *`` of a project file brings under a name."""
        if self.project is None:
            return None
        self._note_project(origin)
        return self.project.export(origin, name)

    def project_class(self, name: str) -> bool:
        """Whether a canonical name is a class of another file of the project."""
        if self.project is None or is_library(name):
            return False
        self._note_project(name)
        return self.project.is_class(name)

    def project_bases(self, name: str) -> list[str]:
        """Canonical names of the bases of a class of another project file."""
        if self.project is None or is_library(name):
            return []
        self._note_project(name)
        return self.project.bases(name)

    def project_definition(
        self, name: str
    ) -> tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] | None:
        """The function or class behind a dotted name of another file of the project, with that file."""
        if self.project is None or is_library(name):
            return None
        self._note_project(name)
        found = self.project.definition_file(name)
        if found is None:
            return None
        other = self._other_file(*found)
        if other is None or other.path == self.path:
            return None
        defined = self.project.resolve(name)[len(found[0]) + 1 :].split(".")
        node = other.definition(defined)
        return None if node is None else (other, node)

    def _other_file(self, name: str, path: Path) -> Module | None:
        assert self.project is not None
        text = self.project.text_of(path)
        if text is None:
            return None
        known = self._other_files.get(path)
        if known is None or known[0] != text:
            parsed = parse_tolerantly(text)
            other: Module | None = None
            if parsed is not None:
                other = Module(SourceText(text), name, str(path), self.project)
                other.fill(parsed.tree)
                # Files that refer to each other share what is parsed of them.
                other._other_files = self._other_files
            known = self._other_files[path] = (text, other)
        return known[1]

    def imported_values(self, alias: ast.alias) -> Values:
        """The constants a name imported from another project file may have."""
        statement = self.parent(alias)
        if self.project is None or not isinstance(statement, ast.ImportFrom):
            return Values((), False)
        name = f"{self.absolute_import(statement.module, statement.level)}.{alias.name}"
        self._note_project(name)
        constant = self.project.constant(name)
        if constant is None:
            return Values((), False)
        return Values((Value(constant, (), self),), True)


def _last_segment(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return None
