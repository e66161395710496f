"""What one file means: the queries that rules ask.

A query that looks outside the unit being checked notes what it read (`Module.reading`), so that a cached result is
known to hold exactly as long as the things it read stay the same. Rules never see this; they just ask.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ranksafe.pausing import pause_point
from ranksafe.semantics.control_flow import ControlFlow
from ranksafe.semantics.cross_file import LaunchCommand, Project
from ranksafe.semantics.facts import (
    ModuleFacts,
    UnitFacts,
    facts_of_module,
    facts_of_unit,
    top_level_function,
)
from ranksafe.semantics.guards import Guard, GuardKind
from ranksafe.semantics.imports import Imports
from ranksafe.semantics.names import Names
from ranksafe.semantics.structure import Function, ModuleStructure
from ranksafe.semantics.types import Types
from ranksafe.semantics.unit_store import ReadKey
from ranksafe.semantics.units import Unit, callee_name
from ranksafe.semantics.value_flow import ValueFlow
from ranksafe.semantics.values import Value, Values
from ranksafe.semantics.walking import FUNCTIONS
from ranksafe.semantics.wrapping import may_wrap
from ranksafe.source.recovery import parse_tolerantly
from ranksafe.source.text import SourceText, stands_in_code, without_comment_lines

__all__ = ["Guard", "GuardKind", "Module", "ModuleFacts", "ReadKey", "Value", "Values"]


@cache
def _of_code(question: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda text: question(without_comment_lines(text))


@cache
def _saying(word: str) -> Callable[[str], bool]:
    return lambda text: stands_in_code(text, word)


REST = "*"
"""Stands in `Module.given_up` for the functions that a large file has behind all that were followed."""


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
        self.imports = Imports(self, name, path, project)
        self.flow = ControlFlow(self)
        self.names = Names(self, self.flow, self.imports)
        self.types = Types(self, self.flow, self.names, self.imports)
        self._value_flow = ValueFlow(self, self.flow, self.names, self.imports)
        self._facts: ModuleFacts | None = None
        self.answers: dict[str, Any] = {}
        """What later layers computed for this text; dropped with it."""
        self.given_up: set[str] = set()
        """The functions that a later layer did not follow because they do too much; an empty name: the statements
        outside functions. `REST`: those at the end of a large file."""
        self._of_text: dict[Callable[[str], bool], bool] = {}
        self._of_text_before: dict[Callable[[str], bool], bool] = {}
        self._kept_questions: set[Callable[[str], bool]] = set()
        """Those of which an answer that outlives an edit may have been made."""
        self._other_files: dict[Path, tuple[str, Module | None]] = {}
        self._asker = self
        """The file on whose behalf this one is read; it is the only one that is ever edited."""
        self._is_known_to_others = False
        """Whether another file that was read for this one may have kept something of it."""

    @property
    def asked_project(self) -> bool:
        """Whether an answer came from other files: then it holds only as long as those stay the same."""
        return self.imports.asked_project

    def text_changed(self, source: SourceText) -> None:
        """Drop what was computed from the text before."""
        super().text_changed(source)
        if self._is_known_to_others:
            for _, other in self._other_files.values():
                if other is not None:
                    other._memory.clear()
                    other.answers.clear()
        self._facts = None
        self.answers.clear()
        self._of_text_before |= {
            question: answer
            for question, answer in self._of_text.items()
            if question in self._kept_questions
        }
        self._of_text.clear()

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
        return self.flow.around(node)

    # -- names

    def canonical(self, name: str) -> str:
        """The public name for an alias of a library's or the project's name."""
        return self.imports.canonical(name)

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

    # -- classes and functions

    def class_name(self, cls: ast.ClassDef) -> str:
        """Canonical name of a class of this file."""
        return self.names.class_name(cls)

    def class_named(self, name: str | None) -> ast.ClassDef | None:
        """The definition of a class of this file by canonical name (classes inside functions are not found)."""
        return self.names.class_named(name)

    def function_called(self, call: ast.Call) -> Function | None:
        """The function of this file that a call runs, when there is just one it can be."""
        return self.names.function_called(call)

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

    # -- values

    def values(self, node: ast.expr) -> Values:
        """What an expression may be: through assignments (reaching definitions, with the conditions on them),
        conditional expressions, dictionary items, ``self.x``, functions' returns, imported constants."""
        return self._value_flow.values(node)

    def argument(self, call: ast.Call, name: str, position: int | None = None) -> Values | None:
        """The value of an argument, through keywords, position (0-based) and ``**kw`` dictionaries; None when it is
        certainly not given. ``complete`` is False when a ``**kw`` is not understood."""
        return self._value_flow.dictionaries.argument(call, name, position)

    def argument_node(
        self, call: ast.Call, name: str, position: int | None = None
    ) -> ast.expr | None:
        """The argument's expression as written in the call, or its value in the ``**kw`` dictionary."""
        return self._value_flow.dictionaries.argument_node(call, name, position)

    def dictionary_entry(self, node: ast.expr, key: str) -> Values | None:
        """Values under a string key of a dictionary expression; None: certainly not there."""
        return self._value_flow.dictionaries.entry(node, key)

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

    def constructions(self, cls: ast.ClassDef) -> list[ast.Call]:
        """Where this file makes objects of a class of its own, or of a subclass, in source order."""
        found: list[ast.Call] = self.memoized(
            "constructions", cls, 0, lambda _node, _depth: list(self.calls(self.class_name(cls)))
        )
        return found

    def _candidates(self, endings: set[str]) -> list[ast.Call]:
        self.note("called", "*")
        suffixes = tuple(endings)
        others: frozenset[str] = self.memoized("renamed", self.tree, 0, self._called_otherwise)
        return [
            call
            for written, calls in self.calls_by_name().items()
            if written in others or written.endswith(suffixes)
            for call in calls
        ]

    def _called_otherwise(self, _tree: ast.AST, _depth: int) -> frozenset[str]:
        return frozenset(filter(self.names.may_stand_for_another, self.calls_by_name()))

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

    # -- the text

    def text_says(self, question: Callable[[str], bool]) -> bool:
        """What a question about the file's whole text has for an answer."""
        pause_point()
        self.note("text", question)
        if self._reads is not None:
            self._kept_questions.add(question)
        if question not in self._of_text:
            self._of_text[question] = question(self.source.text)
        return self._of_text[question]

    def code_says(self, question: Callable[[str], bool]) -> bool:
        """The same without the lines that are comments: code that was commented out does nothing."""
        return self.text_says(_of_code(question))

    def changed_text_answers(self) -> set[ReadKey]:
        """What was read of the text before, and reads otherwise now."""
        before, self._of_text_before = self._of_text_before, {}
        return {
            ("text", question)
            for question, answer in before.items()
            if answer != self.text_says(question)
        }

    @property
    def may_wrap_models(self) -> bool:
        """Whether the file names something that wraps models for several ranks."""
        return self.text_says(may_wrap)

    def users_mention(self, word: str) -> bool:
        """Whether a word stands, outside comments, in this file or in one of the project that imports it, directly or
        through others: ``set_epoch`` may be called where the sampler is used."""
        if self.text_says(_saying(word)):
            return True
        project = self.project
        if project is None or self.path is None:
            return False
        self.imports.asked_project = True
        return project.users_mention(Path(self.path), word)

    def launch_commands(self) -> list[LaunchCommand]:
        """The commands with which a script of the project's, a makefile or a README starts this file, or one that
        imports it, with one process per GPU."""
        project = self.project
        if project is None or self.path is None:
            return []
        self.imports.asked_project = True
        return project.launches_of(Path(self.path))

    def users_saying(self, word: str, *, most: int | None = None) -> list[Module]:
        """The other files of the project that import this one, directly or through others, and in which a word stands
        outside comments: the name of a function of this file, to see who calls it. ``most``: none where there are
        more."""
        return list(self.each_user_saying(word, most=most))

    def each_user_saying(self, word: str, *, most: int | None = None) -> Iterator[Module]:
        """`users_saying`, each file parsed when it is asked for."""
        project, users = self.project, self._files_of_users_saying(word)
        if project is None or (most is not None and len(users) > most):
            return
        for path in users:
            other = self._other_file(project, project.module_name(path), path)
            if other is not None:
                yield other

    def _files_of_users_saying(self, word: str) -> list[Path]:
        project, asker = self.project, self._asker
        if project is None or self.path is None or asker.path is None:
            return []
        asker.imports.asked_project = True
        return project.users_saying(Path(self.path), word, asker=Path(asker.path))

    def imported_saying(self, word: str) -> list[Module]:
        """This file and those of the project that it imports, directly or through others, as far as a word stands in
        them outside comments."""
        own = [self] if self.text_says(_saying(word)) else []
        project, asker = self.project, self._asker
        if project is None or self.path is None:
            return own
        asker.imports.asked_project = True
        paths = project.imported_saying(Path(self.path), word)
        found = [self._other_file(project, project.module_name(path), path) for path in paths]
        return own + [other for other in found if other is not None and other is not self]

    def files_saying(
        self, word: str, *, most: int, unless: Callable[[str], bool] | None = None
    ) -> list[Module]:
        """The other files of the project in which a word stands outside comments, those left out of which ``unless`` is
        true; none where there are more than ``most``."""
        paths = [
            path for path, text in self._texts_saying(word) if unless is None or not unless(text)
        ]
        project = self.project
        if project is None or len(paths) > most:
            return []
        found = [self._other_file(project, project.module_name(path), path) for path in paths]
        return [other for other in found if other is not None]

    def texts_saying(self, word: str) -> list[str]:
        """The texts of the other files of the project in which a word stands outside comments."""
        return [text for _, text in self._texts_saying(word)]

    def _texts_saying(self, word: str) -> Iterator[tuple[Path, str]]:
        project, asker = self.project, self._asker
        if project is None or asker.path is None:
            return
        asker.imports.asked_project = True
        own = None if self.path is None else Path(self.path).absolute()
        for path in project.files_saying(word, asker=Path(asker.path)):
            text = None if path == own else project.text_of(path)
            if text is not None:
                yield path, text

    def is_idle(self, function: str) -> bool:
        """Whether neither this script nor a file that imports it uses a function of the script's, or only other such
        functions do: a remainder. Not what test runners, fire and ``globals()`` find by its name."""
        if not self.facts.is_entry or any(map(self.calls_written, ("Fire", "globals", "locals"))):
            return False
        pending, seen = [function], {function}
        while pending:
            name = pending.pop()
            users = {
                top_level_function(self, use) for use in self._uses_of_functions().get(name, ())
            }
            if None in users or name.startswith("test") or self._files_of_users_saying(name):
                return False
            pending += [user for user in users if user is not None and user not in seen]
            seen.update(pending)
        return True

    def _uses_of_functions(self) -> dict[str, list[ast.Name]]:
        def find(_tree: ast.AST, _depth: int) -> dict[str, list[ast.Name]]:
            own = {item.name for item in self.tree.body if isinstance(item, FUNCTIONS)}
            found: dict[str, list[ast.Name]] = {}
            for use in self.nodes(ast.Name):
                if isinstance(use, ast.Name) and isinstance(use.ctx, ast.Load) and use.id in own:
                    if any(isinstance(item, FUNCTIONS) for item in self.bindings(use)[1]):
                        found.setdefault(use.id, []).append(use)
            return found

        found: dict[str, list[ast.Name]] = self.memoized("uses of functions", self.tree, 0, find)
        return found

    def values_given(self, option: str) -> list[str]:
        """What the commands and the files of settings of the project give an option, as written."""
        project, asker = self.project, self._asker
        if project is None or asker.path is None:
            return []
        asker.imports.asked_project = True
        return project.values_given(option, Path(asker.path))

    def plain_start(self) -> LaunchCommand | None:
        """A command with which a shell script of the project's or a README starts this file with plain python, if none
        starts it, or a file that imports it, with a launcher."""
        project = self.project
        if project is None or self.path is None:
            return None
        self.imports.asked_project = True
        return project.plain_start_of(Path(self.path))

    def runs_on_one_gpu(self) -> bool:
        """Whether shell scripts of the project's or READMEs start this file, or one that imports it, with plain python,
        and every such command leaves one GPU visible (``CUDA_VISIBLE_DEVICES=0 python train.py``)."""
        project = self.project
        if project is None or self.path is None:
            return False
        self.imports.asked_project = True
        return project.runs_on_one_gpu(Path(self.path))

    def project_launches_others(self) -> bool:
        """Whether the project's own commands start its scripts with launchers, but not this one, and this one not with
        plain python either: most likely it is started as they are."""
        project = self.project
        if project is None or self.path is None:
            return False
        self.imports.asked_project = True
        path = Path(self.path)
        return project.launches_any(path) and project.plain_start_of(path) is None

    def runs_in_one_process(self) -> bool:
        """Whether launchers start this file, or one that imports it, in the project's scripts and READMEs, and every
        such command makes one process (``torchrun --nproc-per-node=1``)."""
        project = self.project
        if project is None or self.path is None:
            return False
        self.imports.asked_project = True
        return project.runs_in_one_process(Path(self.path))

    # -- facts

    @property
    def facts(self) -> ModuleFacts:
        """What the file and the project show about launch and training."""
        self.note("facts")
        if self._facts is None:
            self._facts = self._collect_facts()
        return self._facts

    def facts_of(self, unit: Unit) -> UnitFacts:
        """One unit's part of the facts, computed once per version of what it read."""
        found = unit.results.get("facts")
        if found is None:
            with self.reading() as reads:
                found = (facts_of_unit(self, self.names, self.types, unit), frozenset(reads))
            unit.results["facts"] = found
        facts: UnitFacts = found[0]
        return facts

    def _collect_facts(self) -> ModuleFacts:
        outer, self._reads = self._reads, None
        try:
            parts = [self.facts_of(unit) for unit in self.all_units()]
            return facts_of_module(self, parts, self.imports)
        finally:
            self._reads = outer

    # -- the project

    def path_from(self, asker: Module) -> Path | None:
        """The file, for a place in it that is shown to somebody who reads another one; None in ``asker`` itself."""
        return None if self is asker or self.path is None else Path(self.path)

    def project_definition(
        self, name: str
    ) -> tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] | None:
        """The function or class behind a dotted name of another file of the project, with that file."""
        project = self.imports.asked(name)
        found = None if project is None else project.definition_file(name)
        if project is None or found is None:
            return None
        other = self._other_file(project, *found)
        if other is None or other.path == self.path:
            return None
        defined = project.resolve(name)[len(found[0]) + 1 :].split(".")
        node = other.definition(defined)
        return None if node is None else (other, node)

    def _other_file(self, project: Project, name: str, path: Path) -> Module | None:
        asker = self._asker
        if asker.path is not None and Path(asker.path).absolute() == path:
            asker._is_known_to_others = asker is not self
            return asker
        text = project.text_of(path)
        if text is None:
            return None
        known = self._other_files.get(path)
        if known is None or known[0] != text:
            parsed = parse_tolerantly(text)
            other: Module | None = None
            if parsed is not None:
                other = Module(SourceText(text), name, str(path), project)
                other.fill(parsed.tree)
                # Files that refer to each other share what is parsed of them.
                other._other_files = self._other_files
                other._asker = asker
            known = self._other_files[path] = (text, other)
        return known[1]
