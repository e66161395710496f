"""Which rules look at which nodes."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence

from ranksafe.checker.finding import Finding
from ranksafe.checker.rule import Rule, Scope
from ranksafe.launch.context import LaunchContext
from ranksafe.pausing import once, pause_point
from ranksafe.semantics.facts import SEVERAL_GPUS
from ranksafe.semantics.module import Module
from ranksafe.semantics.units import ClassUnit, Unit
from ranksafe.source.text import without_comment_lines

_IN_NAMES = frozenset(b"_") | {byte for byte in range(256) if byte >= 128 or chr(byte).isalnum()}
_NAMES_ALONE = bytes(byte if byte in _IN_NAMES else ord(" ") for byte in range(256))
"""For `bytes.translate`, which is twice as fast as a search for names."""


class Dispatcher:
    """Rules sorted by what they listen to. Holds no state of any file."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        # The rule about suppression comments listens to nothing: it is asked elsewhere.
        self.rules = tuple(rule for rule in rules if rule.listens_to or rule.scope is Scope.MODULE)
        self.by_kind: dict[type[ast.AST], list[Rule]] = {}
        self.class_rules = [rule for rule in rules if rule.scope is Scope.CLASS]
        whole = [rule for rule in rules if rule.scope is Scope.MODULE]
        self.module_rules = [rule for rule in whole if not rule.at_rest]
        self.rules_at_rest = [rule for rule in whole if rule.at_rest]
        for rule in rules:
            if rule.scope is Scope.CHUNK:
                for kind in rule.listens_to:
                    self.by_kind.setdefault(kind, []).append(rule)

    def chunk(self, unit: Unit, module: Module, active: Active) -> Iterator[Finding]:
        """Findings of chunk rules on the nodes of one unit (for a class: of its header)."""
        for kind, rules in active.by_kind.items():
            for node in unit.by_kind.get(kind, ()):
                yield from active.run(rules, node, module)
        if not active.by_called_name:
            return
        for written, calls in unit.calls().items():
            rules = _rules_for_call(written, module, active.by_called_name)
            if rules:
                for call in calls:
                    yield from active.run(rules, call, module)

    def classes(self, unit: Unit, module: Module, active: Active) -> Iterator[Finding]:
        """Findings of class rules on the classes of one unit (a top-level class, or classes inside functions)."""
        nodes: Iterable[ast.AST] = (
            [unit.node] if isinstance(unit, ClassUnit) else unit.by_kind.get(ast.ClassDef, ())
        )
        for node in nodes:
            yield from active.run(active.class_rules, node, module)

    def whole(self, module: Module, active: Active) -> Iterator[Finding]:
        """Findings of module rules."""
        yield from self._whole(self.module_rules, module, active)

    def at_rest(self, module: Module, active: Active) -> Iterator[Finding]:
        """Findings of the module rules that wait for the user to pause."""
        yield from self._whole(self.rules_at_rest, module, active)

    def _whole(self, rules: Sequence[Rule], module: Module, active: Active) -> Iterator[Finding]:
        nodes = _Nodes(module)
        for rule in filter(active.wants, rules):
            heard = nodes.heard_by(rule) if rule.listens_to else [module.tree]
            yield from active.run_over(rule, heard, module)


class _Nodes:
    """The nodes of a file by what rules listen to, collected once for all of them."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._units = list(module.all_units())
        self._by_kind: dict[type[ast.AST], list[ast.AST]] = {}

    def heard_by(self, rule: Rule) -> Iterator[ast.AST]:
        """The nodes that a rule listens to, kind by kind, as they stand in the source."""
        for kind in rule.listens_to:
            if kind is ast.Call and rule.called_names is not None:
                written = {
                    each for name in rule.called_names for each in self._writings.get(name, ())
                }
                calls = [call for each in written for call in self._calls[each]]
                yield from sorted(calls, key=self._module.order_of) if len(written) > 1 else calls
            else:
                if kind not in self._by_kind:
                    nodes = [node for unit in self._units for node in unit.by_kind.get(kind, ())]
                    self._by_kind[kind] = nodes
                yield from self._by_kind[kind]

    @once
    def _calls(self) -> dict[str, list[ast.Call]]:
        """By the last segment of what is called."""
        found: dict[str, list[ast.Call]] = {}
        for unit in self._units:
            for written, calls in unit.calls().items():
                found.setdefault(written, []).extend(calls)
        return found

    @once
    def _writings(self) -> dict[str, list[str]]:
        """For each name what stands for it in calls: itself, and what it was imported or assigned as."""
        found: dict[str, list[str]] = {}
        for written in self._calls:
            for name in {written, *self._module.names.original_names(written)}:
                found.setdefault(name, []).append(written)
        return found


def _rules_for_call(
    written: str, module: Module, by_called_name: dict[str | None, list[Rule]]
) -> list[Rule]:
    found = list(by_called_name.get(None, ()))
    for name in sorted({written, *module.names.original_names(written)}):
        found += [rule for rule in by_called_name.get(name, ()) if rule not in found]
    return found


class Active:
    """The rules that run on one file, and the launch context they are given."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        launch: LaunchContext,
        text: str,
        is_trained: Callable[[], bool],
        is_used: Callable[[], bool],
    ) -> None:
        self._dispatcher = dispatcher
        self.launch = launch
        self.text = text
        self._is_trained = is_trained
        """Whether another file of the project trains or wraps models of this one."""
        self._is_used = is_used
        """Whether a file of several processes may call functions of this one."""
        self._words: dict[tuple[bool, str], bool] = {}
        """Which of the words that were asked for occur in the file's text (True), or in it without comments; a word
        that has gone is kept."""
        self._wanted: dict[str, bool] = {}
        self.failed: dict[str, str] = {}
        """Codes of rules that raised here, with the traceback."""

    @property
    def wants_any(self) -> bool:
        """Whether any rule runs here."""
        return any(map(self.wants, self._dispatcher.rules))

    @property
    def codes(self) -> frozenset[str]:
        """The codes of the rules that run here."""
        return frozenset(rule.metadata.code for rule in self._dispatcher.rules if self.wants(rule))

    def wants(self, rule: Rule) -> bool:
        """Whether the rule runs here: words without which it finds nothing occur, and it has not failed."""
        wanted = self._wanted.get(rule.metadata.code)
        if wanted is None:
            called = rule.called_names if rule.listens_to == (ast.Call,) else None
            # The project is asked last: that takes longest.
            wanted = self._wanted[rule.metadata.code] = (
                (not rule.mentions or self._mentions(rule.mentions))
                and (called is None or self._mentions(called))
                and (
                    not rule.on_several_gpus
                    or self._is_for_several_gpus
                    or (rule.follows_callers and self._is_used())
                )
            )
        return wanted and rule.metadata.code not in self.failed

    @once
    def _is_for_several_gpus(self) -> bool:
        # How a script is started often stands in its comments.
        return self._mentions(SEVERAL_GPUS, comments=True) or self._is_trained()

    def _mentions(self, words: frozenset[str], *, comments: bool = False) -> bool:
        known = self._words
        for word in words:
            key = (comments, word)
            if key not in known:
                # A word of letters stands in one of the names, or nowhere: they are a tenth of the text.
                code = self._names if word.isidentifier() else self._code
                known[key] = word in (self.text if comments else code)
            if known[key]:
                return True
        return False

    @once
    def _code(self) -> str:
        return without_comment_lines(self.text)

    @once
    def _names(self) -> str:
        """Each name in the code once."""
        code = self._code.encode("utf-8", "surrogatepass")
        names = b"\n".join(set(code.translate(_NAMES_ALONE).split()))
        return names.decode("utf-8", "surrogatepass")

    def text_changed(self, text: str, new: str) -> bool:
        """Take over a text of which a part is new; whether rules run now that did not before."""
        self.text = text
        for name in ("_code", "_names"):
            self.__dict__.pop(name, None)
        code = without_comment_lines(new)
        found = {
            (comments, word)
            for (comments, word), occurs in self._words.items()
            if not occurs and word in (new if comments else code)
        }
        if not found:
            return False
        self._words.update(dict.fromkeys(found, True))
        self._wanted.clear()
        for name in ("by_kind", "by_called_name", "class_rules", "_is_for_several_gpus"):
            self.__dict__.pop(name, None)
        return True

    @once
    def class_rules(self) -> list[Rule]:
        """The class rules that run."""
        return [rule for rule in self._dispatcher.class_rules if self.wants(rule)]

    @once
    def by_kind(self) -> dict[type[ast.AST], list[Rule]]:
        """The chunk rules that run, by what they listen to; calls apart."""
        return {
            kind: wanted
            for kind, rules in self._dispatcher.by_kind.items()
            if kind is not ast.Call and (wanted := [rule for rule in rules if self.wants(rule)])
        }

    @once
    def by_called_name(self) -> dict[str | None, list[Rule]]:
        """The chunk rules that run and listen to calls, by the callee's last segment; None: any."""
        found: dict[str | None, list[Rule]] = {}
        for rule in filter(self.wants, self._dispatcher.by_kind.get(ast.Call, ())):
            for name in (None,) if rule.called_names is None else rule.called_names:
                found.setdefault(name, []).append(rule)
        return found

    def run(self, rules: Iterable[Rule], node: ast.AST, module: Module) -> Iterator[Finding]:
        """Run rules on a node."""
        for rule in rules:
            yield from self.run_over(rule, (node,), module)

    def run_over(self, rule: Rule, nodes: Iterable[ast.AST], module: Module) -> Iterator[Finding]:
        """Run a rule on nodes; one that raises is switched off for this file."""
        code = rule.metadata.code
        for node in nodes:
            if code in self.failed:
                return
            pause_point()
            try:
                yield from list(rule.check(node, module, self.launch))
            except Exception:
                self.failed[code] = traceback.format_exc()
