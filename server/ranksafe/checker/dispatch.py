"""Which rules look at which nodes."""

from __future__ import annotations

import ast
import logging
import traceback
from collections.abc import Iterable, Iterator, Sequence

from ranksafe.checker.finding import Finding
from ranksafe.checker.rule import Rule, Scope
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module
from ranksafe.semantics.units import ClassUnit, Unit

logger = logging.getLogger(__name__)


class Dispatcher:
    """Rules sorted by what they listen to. Holds no state of any file."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self.words = frozenset(word for rule in rules for word in rule.mentions)
        # The rule about suppression comments listens to nothing: it is asked elsewhere.
        self._wait_for_nothing = any(
            rule.listens_to and not rule.mentions for rule in rules
        ) or any(rule.scope is Scope.MODULE and not rule.mentions for rule in rules)
        self._by_called_name: dict[str, list[Rule]] = {}
        self._every_call: list[Rule] = []
        self._by_kind: dict[type[ast.AST], list[Rule]] = {}
        self._class_rules: list[Rule] = []
        self.module_rules: list[Rule] = []
        self.rules_at_rest: list[Rule] = []
        for rule in rules:
            if rule.scope is Scope.MODULE:
                (self.rules_at_rest if rule.at_rest else self.module_rules).append(rule)
            elif rule.scope is Scope.CLASS:
                self._class_rules.append(rule)
            else:
                self._add_chunk_rule(rule)

    def has_rule_for(self, text: str) -> bool:
        """Whether some rule's `mentions` occur in the text, or some rule waits for none."""
        return self._wait_for_nothing or any(word in text for word in self.words)

    def _add_chunk_rule(self, rule: Rule) -> None:
        for kind in rule.listens_to:
            if kind is not ast.Call:
                self._by_kind.setdefault(kind, []).append(rule)
            elif rule.called_names is None:
                self._every_call.append(rule)
            else:
                for name in rule.called_names:
                    self._by_called_name.setdefault(name, []).append(rule)

    def chunk(self, unit: Unit, module: Module, active: Active) -> Iterator[Finding]:
        """Findings of chunk rules on the nodes of one unit (for a class: of its header)."""
        for kind, rules in self._by_kind.items():
            for node in unit.by_kind.get(kind, ()):
                yield from active.run(rules, node, module)
        if not self._by_called_name and not self._every_call:
            return
        for written, calls in unit.calls().items():
            rules = self._rules_for_call(written, module)
            if rules:
                for call in calls:
                    yield from active.run(rules, call, module)

    def _rules_for_call(self, written: str, module: Module) -> list[Rule]:
        names = {written, *module.original_names(written)}
        found = list(self._every_call)
        for name in sorted(names):
            found += [rule for rule in self._by_called_name.get(name, ()) if rule not in found]
        return found

    def has_class_rule(self, active: Active) -> bool:
        """Whether some class rule runs on the file."""
        return any(active.wants(rule) for rule in self._class_rules)

    def classes(self, unit: Unit, module: Module, active: Active) -> Iterator[Finding]:
        """Findings of class rules on the classes of one unit (a top-level class, or classes inside functions)."""
        if not self._class_rules:
            return
        nodes: Iterable[ast.AST] = (
            [unit.node] if isinstance(unit, ClassUnit) else unit.by_kind.get(ast.ClassDef, ())
        )
        for node in nodes:
            yield from active.run(self._class_rules, node, module)

    def whole(self, module: Module, active: Active) -> Iterator[Finding]:
        """Findings of module rules."""
        yield from self._whole(self.module_rules, module, active)

    def at_rest(self, module: Module, active: Active) -> Iterator[Finding]:
        """Findings of the module rules that wait for the user to pause."""
        yield from self._whole(self.rules_at_rest, module, active)

    def _whole(self, rules: Sequence[Rule], module: Module, active: Active) -> Iterator[Finding]:
        for rule in rules:
            if not rule.listens_to:
                yield from active.run([rule], module.tree, module)
            for kind in rule.listens_to:
                for unit in module.all_units():
                    for node in unit.by_kind.get(kind, ()):
                        yield from active.run([rule], node, module)


class Active:
    """The rules that run on one file, and the launch context they are given."""

    def __init__(self, launch: LaunchContext) -> None:
        self.launch = launch
        self.words: set[str] = set()
        """Words of the rules' `mentions` that occur in the file."""
        self._wanted: dict[str, bool] = {}
        self.failed: dict[str, str] = {}
        """Codes of rules that raised here, with the traceback."""

    def wants(self, rule: Rule) -> bool:
        """Whether the rule runs here: a word it waits for occurs, and it has not failed."""
        wanted = self._wanted.get(rule.metadata.code)
        if wanted is None:
            wanted = not rule.mentions or not self.words.isdisjoint(rule.mentions)
            self._wanted[rule.metadata.code] = wanted
        return wanted and rule.metadata.code not in self.failed

    def add_words(self, words: set[str]) -> None:
        """Take note of words that occur in the file."""
        self.words |= words
        self._wanted.clear()

    def run(self, rules: Iterable[Rule], node: ast.AST, module: Module) -> Iterator[Finding]:
        """Run rules on a node; one that raises is switched off for this file."""
        for rule in rules:
            if not self.wants(rule):
                continue
            code = rule.metadata.code
            try:
                yield from list(rule.check(node, module, self.launch))
            except Exception:
                self.failed[code] = traceback.format_exc()
                logger.exception("%s failed on %s and is off there", code, module.path)
