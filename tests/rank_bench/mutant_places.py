"""Where in real training code a mutant can be made: statements with one collective that every rank reaches.

Only what the text shows is used, and what is doubtful is left out: statements that a test about the rank guards
already, collectives on a group of their own, handlers and ``finally`` blocks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.rank_bench.mutant_names import (
    ACCELERATOR,
    DISTRIBUTED,
    Names,
    dotted,
    names_of,
)

GUARD, RETURN, CONTINUE = "guard", "return", "continue"

_ABOUT_RANKS = re.compile(
    r"(?i)rank|main_process|process_index|process_zero|global_zero|is_master|is_main|primary|is_last_process"
)
_NO_SYNC = re.compile(r"no_sync|join|profile")
_OWN_GROUP = ("group", "process_group")
_MOST_ARGUMENTS = 2
"""With more, one that is given by its place may be the group."""
_LOSS = re.compile(r"(\w+_)?loss\Z")

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)


@dataclass(frozen=True, slots=True)
class Place:
    """A statement that can be guarded or skipped."""

    row: int
    """Its first line, from 1."""
    end_row: int
    indent: str
    collective: str
    """As it is written, without arguments."""
    is_main: str
    """An expression in scope there that is true on one rank."""
    function: str
    function_row: int
    function_source: str
    """For telling copies apart."""
    in_loop: bool
    loss: str | None
    """A loss of this rank's batch in scope there, if the statement stands in a loop."""
    trait: str
    """What may make it hard to see."""

    @property
    def kinds(self) -> list[str]:
        """The mutants that can be made of it."""
        return [GUARD, RETURN, *([CONTINUE] if self.loss else [])]

    @property
    def is_backward(self) -> bool:
        """Whether the ranks meet in the hooks of the backward pass."""
        return self.collective.endswith(".backward")


def find_places(text: str) -> list[Place]:
    """All places in a file, in its order; none where it does not parse."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    lines = text.split("\n")
    names = names_of(tree, text)
    places = []
    for function, owner in _functions(tree, None):
        places += _Finder(function, owner, names, lines).places
    return places


def _functions(
    node: ast.AST, owner: str | None
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield child, owner or "function"
            yield from _functions(child, "nested function")
        else:
            yield from _functions(child, "method" if isinstance(child, ast.ClassDef) else owner)


class _Finder:
    """Walks the statements of one function, not of those inside it."""

    def __init__(
        self,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        owner: str,
        names: Names,
        lines: list[str],
    ) -> None:
        self.function = function
        self.owner = owner
        self.names = names
        self.lines = lines
        self.generator = any(
            isinstance(node, (ast.Yield, ast.YieldFrom)) for node in _own(function)
        )
        self.rank_name: str | None = None
        self.accelerators = {
            written
            for node in _own(function)
            if (written := dotted(node)) is not None and _is_accelerator(written)
        }
        self.wrapped = {
            target.id
            for node in _own(function)
            if names.wrapped
            and isinstance(node, ast.Assign)
            and "DistributedDataParallel(" in ast.unparse(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        self.places: list[Place] = []
        if not any(_ABOUT_RANKS.search(ast.unparse(item)) for item in function.decorator_list):
            self._block(function.body, in_loop=False, in_try=False, losses=set())

    def _block(
        self, body: list[ast.stmt], *, in_loop: bool, in_try: bool, losses: set[str]
    ) -> None:
        for statement in body:
            if isinstance(statement, (*_Function, ast.ClassDef)):
                continue
            if isinstance(statement, _SIMPLE):
                self._simple(statement, in_loop, in_try, losses)
            elif isinstance(statement, ast.If):
                if self._leaves_by_rank(statement):
                    return
                if not _ABOUT_RANKS.search(ast.unparse(statement.test)):
                    for branch in (statement.body, statement.orelse):
                        self._block(branch, in_loop=in_loop, in_try=in_try, losses=losses)
            elif isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
                self._block(statement.body, in_loop=True, in_try=in_try, losses=set())
            elif isinstance(statement, (ast.With, ast.AsyncWith)):
                heads = " ".join(ast.unparse(item.context_expr) for item in statement.items)
                if not _ABOUT_RANKS.search(heads) and not _NO_SYNC.search(heads):
                    self._block(statement.body, in_loop=in_loop, in_try=in_try, losses=losses)
            elif isinstance(statement, ast.Try):
                self._block(statement.body, in_loop=in_loop, in_try=True, losses=losses)

    def _leaves_by_rank(self, statement: ast.If) -> bool:
        """What follows is not reached by all ranks."""
        leaves = isinstance(statement.body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))
        return leaves and bool(_ABOUT_RANKS.search(ast.unparse(statement.test)))

    def _simple(self, statement: ast.stmt, in_loop: bool, in_try: bool, losses: set[str]) -> None:
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        collectives = [found for call in calls if (found := self._collective(call)) is not None]
        if len(collectives) == 1 and self._stands_alone(statement):
            self._add(statement, *collectives[0], in_loop, in_try, losses)
        self._follow(statement, losses, cleansed=bool(collectives))

    def _follow(self, statement: ast.stmt, losses: set[str], *, cleansed: bool) -> None:
        """Keep track of this rank's losses and of a name for the rank."""
        if cleansed and ".backward(" not in ast.unparse(statement):
            losses.clear()
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], ast.unparse(statement.value)
            if isinstance(target, ast.Name):
                if re.fullmatch(r"[\w.]*\bget_rank\(\)", value):
                    self.rank_name = target.id
                if _LOSS.match(target.id) and isinstance(
                    statement.value, (ast.Call, ast.Attribute)
                ):
                    if not re.search(r"item\(|float\(|gather|reduce|zeros|mean_loss", value):
                        losses.add(target.id)

    def _collective(self, call: ast.Call) -> tuple[str, str] | None:
        """The name of a collective as it is written, and an expression that is true on one rank."""
        written = dotted(call.func)
        if written is None or len(call.args) > _MOST_ARGUMENTS:
            return None
        if any(word.arg in _OWN_GROUP and not _is_none(word.value) for word in call.keywords):
            return None
        receiver, _, name = written.rpartition(".")
        if receiver in self.names.distributed and name in DISTRIBUTED:
            return written, self._first_rank(f"{receiver}.get_rank()")
        if name in ACCELERATOR and _is_accelerator(receiver):
            return written, f"{receiver}.is_main_process"
        if not receiver and name in self.names.functions:
            if (
                self.names.functions[name] == "torch"
                and "torch.distributed" in self.names.distributed
            ):
                return written, self._first_rank("torch.distributed.get_rank()")
            if self.names.functions[name] == "accelerate":
                main = self._main_process()
                return (written, main) if main else None
        if name == "backward" and self.wrapped and _LOSS.match(receiver) and self.names.distributed:
            prefix = min(self.names.distributed)
            return written, self._first_rank(f"{prefix}.get_rank()")
        return None

    def _first_rank(self, call: str) -> str:
        return f"{self.rank_name or call} == 0"

    def _main_process(self) -> str | None:
        if self.accelerators:
            return f"{min(self.accelerators, key=len)}.is_main_process"
        return "PartialState().is_main_process" if self.names.partial_state else None

    def _stands_alone(self, statement: ast.stmt) -> bool:
        """On lines of its own, and no string of it goes over lines (its indentation would be part of it)."""
        first = self.lines[statement.lineno - 1]
        last = self.lines[(statement.end_lineno or 0) - 1]
        rest = last.encode()[statement.end_col_offset or 0 :].decode().strip()
        strings = (
            node
            for node in ast.walk(statement)
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.lineno != node.end_lineno
        )
        alone = not first[: statement.col_offset].strip() and (not rest or rest.startswith("#"))
        return alone and not any(True for _ in strings)

    def _add(
        self,
        statement: ast.stmt,
        collective: str,
        is_main: str,
        in_loop: bool,
        in_try: bool,
        losses: set[str],
    ) -> None:
        used = losses & {node.id for node in ast.walk(self.function) if isinstance(node, ast.Name)}
        self.places.append(
            Place(
                row=statement.lineno,
                end_row=statement.end_lineno or statement.lineno,
                indent=self.lines[statement.lineno - 1][: statement.col_offset],
                collective=collective,
                is_main=is_main,
                function=self.function.name,
                function_row=self.function.lineno,
                function_source=ast.unparse(self.function),
                in_loop=in_loop,
                loss=min(used) if in_loop and used else None,
                trait=self._trait(collective, in_try),
            )
        )

    def _trait(self, collective: str, in_try: bool) -> str:
        receiver = collective.partition(".")[0]
        arguments = self.function.args
        parameters = {item.arg for item in (*arguments.args, *arguments.kwonlyargs)}
        if in_try:
            return "inside try"
        if self.generator:
            return "in a generator"
        if self.owner == "nested function":
            return "in a nested function"
        if receiver == "self":
            return "the accelerator is an attribute"
        if receiver in parameters:
            return "the accelerator is a parameter"
        return f"plain {self.owner}"


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, (*_Function, ast.Lambda)):
            yield child
            yield from _own(child)


def _is_accelerator(receiver: str) -> bool:
    return receiver.rpartition(".")[2] in ("accelerator", "_accelerator")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
