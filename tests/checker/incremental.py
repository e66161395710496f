"""Random editing of real files: what the incremental property is checked with.

The rules here are noisy on purpose: they put every answer of the semantic queries into their findings, so that a
stale answer anywhere shows as a difference.
"""

from __future__ import annotations

import ast
import io
import random
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.finding import Finding, Level, Related
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule import Rule, RuleMetadata, Scope
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.rank_flow import rank_issues
from ranksafe.semantics.cross_file import Project
from ranksafe.semantics.facts import data_parallel_reachable
from ranksafe.semantics.module import Module
from ranksafe_rules._shared.trails.follow import trail_of


def _metadata(code: str) -> RuleMetadata:
    return RuleMetadata(code, f"noisy-{code.lower()}", Translated("", ""), Level.WARNING, "0.1.0")


def _said(text: str) -> Translated:
    return Translated(text, text)


class EveryCall(Rule):
    """Says the callee's name, the result's type and what the arguments may be."""

    metadata: ClassVar[RuleMetadata] = _metadata("RS980")
    listens_to = (ast.Call,)

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        values = [module.values(argument) for argument in node.args[:3]]
        known = [[ast.dump(item.node)[:80] for item in value.known] for value in values]
        guards = [f"{guard.kind.value}{guard.positive}" for guard in module.guards(node)]
        text = f"{module.qualified_name(node.func)} {module.type_of(node)} {known} {guards}"
        yield self.finding(module, node.func, _said(text))


class EveryClass(Rule):
    """Says the lineage of a class and what its methods and attributes are."""

    metadata: ClassVar[RuleMetadata] = _metadata("RS981")
    listens_to = (ast.ClassDef,)
    scope = Scope.CLASS

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        assert isinstance(node, ast.ClassDef)
        name = module.class_name(node)
        reached = [method.name for method in module.methods_reached_from(node, "forward")]
        model = [
            (module.text_of(store), module.range_of(store))
            for store in module.attribute_stores(node, "model")
        ]
        text = f"{name} {sorted(module.types.lineage(name))} {reached} {model}"
        related = [
            Related(_said(method.name), module.range_of(method)) for method in module.methods(node)
        ]
        yield self.finding(module, node, _said(text[: text.find("Range(")]), related=related)


class TrainerCalls(Rule):
    """Reads the facts and the keyword dictionaries of calls that matter to real rules."""

    metadata: ClassVar[RuleMetadata] = _metadata("RS982")
    listens_to = (ast.Call,)
    called_names = frozenset(
        {"Trainer", "from_pretrained", "prepare", "DataParallel", "Accelerator"}
    )

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        facts = module.facts
        values = module.argument(node, "device_map")
        known = None if values is None else [ast.dump(item.node)[:60] for item in values.known]
        text = (
            f"{known} {[word for word, _ in facts.trainers]} {facts.is_entry} {sorted(facts.imports)} "
            f"{data_parallel_reachable(module.facts, launch)} {len(module.uses_of(node))}"
        )
        related = [Related(_said(word), place) for word, place in facts.trainers]
        yield self.finding(module, node.func, _said(text), related=related)


class WholeFile(Rule):
    """Counts what is in the file."""

    metadata: ClassVar[RuleMetadata] = _metadata("RS983")
    scope = Scope.MODULE

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        for call in module.calls("torch.nn.Module", "torch.distributed.all_reduce"):
            yield self.finding(module, call, _said("call"))
        yield from (
            self.finding(module, item, _said(item.name))
            for item in module.nodes(ast.FunctionDef)
            if isinstance(item, ast.FunctionDef)
        )


class EveryRankIssue(Rule):
    """Says all that rank flow finds, with the places that belong to it."""

    metadata: ClassVar[RuleMetadata] = _metadata("RS984")
    scope = Scope.MODULE
    at_rest = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        for issue in rank_issues(module):
            places = [issue.waits, issue.branch, issue.other_place]
            lines = [
                place.module.range_of(place.node).start.line
                for place in places
                if place is not None
            ]
            origin = "" if issue.origin is None else issue.origin.text
            text = (
                f"{issue.kind.value} {issue.operation} {issue.other} {origin} {issue.name} {lines}"
            )
            yield self.finding(module, issue.place.node, _said(text))


class WhereSamplersGo(Rule):
    """Says all expressions, of whatever file, that stand for a sampler made here or for its loader."""

    metadata: ClassVar[RuleMetadata] = _metadata("RS985")
    listens_to = (ast.Call,)
    called_names = frozenset({"DistributedSampler"})
    scope = Scope.MODULE
    at_rest = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        for holder in trail_of(module, node).holders:
            place = holder.module.range_of(holder.node)
            where = (holder.module.name, place.start.line, place.start.column)
            text = f"{holder.form.name} {where} {len(holder.made)} {len(holder.entries)}"
            yield self.finding(module, node, _said(text))


def noisy_analyzer(project: Project | None = None) -> Analyzer:
    """An analyzer with the noisy rules only; ``project``: what is known of other files."""
    rules: list[Rule] = [
        EveryCall(),
        EveryClass(),
        TrainerCalls(),
        WholeFile(),
        EveryRankIssue(),
        WhereSamplersGo(),
    ]
    folders = [RuleFolder(rule, Path("noisy"), "noisy") for rule in rules]
    return Analyzer(Registry(folders=folders), Configuration(), LaunchContext(), project)


@dataclass(frozen=True)
class Edit:
    """New text, and the lines (0-based, inclusive) of the old text that were touched."""

    text: str
    first: int
    last: int
    kind: str


def random_edit(text: str, rng: random.Random) -> Edit:
    """One edit as people make them: typing, deleting, cutting short, moving lines, commenting out."""
    lines = text.split("\n")
    number = rng.randrange(len(lines))
    kind = rng.choice([*_EDITS])
    last = number
    if kind == "delete-lines":
        last = min(number + rng.randrange(1, 4), len(lines) - 1)
    line = _EDITS[kind](lines[number], rng)
    return Edit("\n".join([*lines[:number], line, *lines[last + 1 :]]), number, last, kind)


def _type(line: str, rng: random.Random) -> str:
    column = rng.randrange(len(line) + 1)
    typed = rng.choice(["x", "z1", " ", ".", "(", ")", "=", "\n", "🤗"])
    return line[:column] + typed + line[column:]


def _insert_line(line: str, rng: random.Random) -> str:
    whole = ["x = 1", "import torch", "import torch as nn", "for i in y:", "return", "model = None"]
    return f"{_indent_of(line)}{rng.choice([*whole, ''])}\n{line}"


def _half_type(line: str, rng: random.Random) -> str:
    half = ["model.", "trainer = Trainer(", "if x", "def f(", "class A", "from torch import", "@"]
    return f"{line}\n{_indent_of(line)}{rng.choice(half)}"


def _indent(line: str, rng: random.Random) -> str:
    return line[4:] if line.startswith("    ") and rng.random() < 0.5 else "    " + line


def _delete_closer(line: str, rng: random.Random) -> str:
    closers = [index for index, character in enumerate(line) if character in ")]}"]
    cut = rng.choice(closers) if closers else len(line)
    return line[:cut] + line[cut + 1 :]


def _indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _without_token(line: str, rng: random.Random) -> str:
    try:
        tokens = [
            item
            for item in tokenize.generate_tokens(io.StringIO(line).readline)
            if item.string.strip()
        ]
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return line[1:]
    if not tokens:
        return line
    token = rng.choice(tokens)
    return line[: token.start[1]] + line[token.end[1] :]


_EDITS: dict[str, Callable[[str, random.Random], str]] = {
    "type": _type,
    "delete-token": _without_token,
    "truncate": lambda line, rng: line[: rng.randrange(len(line) + 1)],
    "insert-line": _insert_line,
    "delete-lines": lambda *_: "",
    "comment": lambda line, _: "# " + line,
    "duplicate": lambda line, _: f"{line}\n{line}",
    "indent": _indent,
    "delete-closer": _delete_closer,
    "quote": lambda line, rng: line + rng.choice(['"', "'", '"""']),
    "rename": lambda line, _: line.replace("model", "modle").replace("self", "slef"),
    "half-typed": _half_type,
}
"""Of one line, by name."""


def parses(text: str) -> bool:
    """Whether Python accepts the text."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
