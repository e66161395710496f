"""Whether an expression depends on which rank evaluates it, as far as its names and origins tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.ranks import rank_variables
from ranksafe.semantics.structure import Function

from ranksafe_rules._shared.origins import arguments_for
from ranksafe_rules._shared.passed_arguments import position_of
from ranksafe_rules._shared.trails.functions import MOST_FILES, callers

_MAXIMUM_DEPTH: Final = 3
_RANK: Final = re.compile(
    r"rank|(^|_|is)main(_|proc|$)|master|chief|leader|primary|coordinator|zero|process_(index|id)|proc_?id|(^|_)pid"
    r"|(^|_)gpu(_?id)?$|worker|device_?id|should_(save|log|write)|is_?root",
    re.IGNORECASE,
)
"""Wide on purpose: what looks like a question about the rank is taken for one, and the rules are silent."""
_RANK_IN_TEXT: Final = re.compile(
    r"\bget_rank\b|(?:\b|_)rank\b|RANK\b|\bis_\w*main_process\b|\bprocess_index\b"
)
_VARIABLES: Final = frozenset(
    {"RANK", "LOCAL_RANK", "GROUP_RANK", "NODE_RANK", "SLURM_PROCID", "SLURM_LOCALID"}
    | {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "GLOBAL_RANK"}
)


def asks_for_the_rank(
    module: Module, expression: ast.AST, depth: int = _MAXIMUM_DEPTH, *, from_callers: bool = True
) -> bool:
    """Whether the value of ``expression`` may differ between ranks because it is computed from the rank.

    Followed through variables, attributes, conditions on assignments, parameters and what functions of the file
    return; with ``from_callers`` also to what calls in other files pass.
    """
    return _Search(module, from_callers).asks(expression, depth)


class _Search:
    """For something that tells ranks apart. Each place is looked at once: a variable that is assigned under many
    conditions leads to itself on many ways."""

    def __init__(self, module: Module, from_callers: bool = True) -> None:
        self._module = module
        self._from_callers = from_callers
        self._seen: set[tuple[ast.AST, int]] = set()

    def asks(self, expression: ast.AST, depth: int) -> bool:
        if (expression, depth) in self._seen:
            return False
        self._seen.add((expression, depth))
        if _word(expression) or self._is_called_rank(expression):
            return True
        if depth and isinstance(expression, (ast.Name, ast.Attribute)):
            if isinstance(expression.ctx, ast.Load) and self._was_made_by_rank(
                expression, depth - 1
            ):
                return True
        if isinstance(expression, ast.Call):
            called = self._module.function_called(expression)
            if called is not None:
                return _word(expression.func) or (
                    depth > 0
                    and any(
                        self._returns_rank(item, depth) for item in self._module.returns_of(called)
                    )
                )
        # An object that was made with the rank (``args``, ``self``) has attributes that are the same everywhere.
        below = 0 if isinstance(expression, ast.Attribute) else depth
        return any(self.asks(child, below) for child in ast.iter_child_nodes(expression))

    def _is_called_rank(self, node: ast.AST) -> bool:
        """Whether the program hands the variable over as the rank."""
        if not isinstance(node, ast.Name):
            return False
        variables = rank_variables(self._module)
        return bool(variables) and not variables.isdisjoint(self._module.bindings(node)[1])

    def _was_made_by_rank(self, node: ast.Name | ast.Attribute, depth: int) -> bool:
        for value in self._module.values(node).known:
            if any(self.asks(guard.test, depth) for guard in value.guards):
                return True
            if value.node is not node and self.asks(value.node, depth):
                return True
        if any(self.asks(value, depth) for value in assigned_to(self._module, node)):
            return True
        if isinstance(node, ast.Attribute):
            stores = _stores(self._module, node)
            is_own = self._module.class_of_self(node.value) is not None
            tests = (guard.test for store in stores for guard in self._module.guards(store))
            if any(self.asks(test, depth) for test in tests if is_own or not _counts(test)):
                return True
            return not stores and _is_set_by_rank_elsewhere(self._module, node)
        return any(
            self.asks(argument, depth) for argument in arguments_for(self._module, node)
        ) or (self._from_callers and _is_given_by_rank(self._module, node, depth))

    def _returns_rank(self, leaving: ast.Return, depth: int) -> bool:
        if leaving.value is not None and self.asks(leaving.value, depth - 1):
            return True
        return any(self.asks(guard.test, 0) for guard in self._module.guards(leaving))


def _is_given_by_rank(module: Module, node: ast.Name, depth: int) -> bool:
    """Whether every call in the project gives a parameter what was made by the rank, or some give it another value than
    others and all of them stand under conditions on the rank (``Trainer(logger)``, else ``Trainer()``)."""
    function = module.enclosing_function(node)
    if function is None or depth == 0:
        return False
    for item in module.bindings(node)[1]:
        if isinstance(item, ast.arg) and module.enclosing_function(item) is function:
            given: bool = module.memoized(
                "given by rank",
                item,
                depth,
                lambda item, depth: _given(module, function, item.arg, depth),
            )
            return given
    return False


def _given(module: Module, function: Function, parameter: str, depth: int) -> bool:
    position = position_of(module, function, parameter)
    values: set[str] = set()
    chosen = False
    for user, call in callers(module, function, most=MOST_FILES):
        given = user.argument_node(call, parameter, position)
        values.add("" if given is None else user.text_of(given))
        search = _Search(user)
        if given is not None and search.asks(given, depth):
            continue
        if not any(search.asks(guard.test, 0) for guard in user.guards(call)):
            return False
        chosen = True
    if not values:
        return _is_handed_over_as_rank(module, function, parameter)
    return len(values) > 1 or not chosen


def _is_set_by_rank_elsewhere(module: Module, node: ast.Attribute) -> bool:
    """Whether another file of the project gives an attribute of this name a value that names the rank, on one line:
    ``config.is_first = int(os.environ["LOCAL_RANK"]) == 0``, ``Options(is_first=rank == 0)``."""
    call, attribute = module.parent(node), node.attr
    if isinstance(call, ast.Call) and call.func is node:
        return False
    name = re.escape(attribute)
    # An attribute, a key, or a keyword; a variable of the same name is something else. What stands in front of the name
    # is asked behind it: the search runs from name to name, not from letter to letter.
    told = rf"(?<=\.{name})[ \t]*=|(?<=[\"']{name})[\"'][ \t]*\]?[ \t]*[=:]|(?<!\w{name})="
    setting = rf"{name}(?:{told})(?!=)([^\n]*)"
    return _is_rank_elsewhere(module, attribute, setting)


def _is_handed_over_as_rank(module: Module, function: Function, parameter: str) -> bool:
    """Whether a file of the project that names a function of which no call is known, or its class (it changes
    ``sys.path``, or has the function from somewhere else), gives the rank to a parameter of this name."""
    owner = module.parent(function)
    name = owner.name if isinstance(owner, ast.ClassDef) else function.name
    giving = rf"\b{re.escape(parameter)}[ \t]*=(?!=)([^\n,)]*)"
    return _is_rank_elsewhere(module, name, giving)


def _is_rank_elsewhere(module: Module, word: str, giving: str) -> bool:
    """Whether a value that a pattern finds in the other files that say a word names the rank."""
    known: dict[tuple[str, str], bool] = module.answers.setdefault("ranks elsewhere", {})
    if (word, giving) not in known:
        known[word, giving] = any(
            _RANK_IN_TEXT.search(value)
            for text in module.texts_saying(word)
            for value in re.findall(giving, text)
        )
    return known[word, giving]


def _counts(test: ast.expr) -> bool:
    """Whether a test asks how many there are, of GPUs or workers for one, which all ranks see alike."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
        for node in ast.walk(test)
    )


def identifiers(expression: ast.AST) -> Iterator[str]:
    """The names, attributes and string keys in an expression."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield str(node.slice.value)


def names_behind(module: Module, expression: ast.AST) -> Iterator[str]:
    """The names in an expression, and in what its variables were assigned."""
    yield from identifiers(expression)
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            for value in assigned_to(module, node):
                yield from identifiers(value)


def _word(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in _VARIABLES
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return _RANK.search(str(node.slice.value)) is not None
    if isinstance(node, ast.Name):
        return node.id != "__name__" and _RANK.search(node.id) is not None
    return isinstance(node, ast.Attribute) and _RANK.search(node.attr) is not None


def assigned_to(module: Module, node: ast.Name | ast.Attribute) -> Iterator[ast.expr]:
    """The expressions that plain assignments give to a variable or an attribute."""
    if isinstance(node, ast.Name):
        for binding in module.bindings(node)[1]:
            value = module.assigned_value(binding) if isinstance(binding, ast.Name) else None
            if value is not None:
                yield value
        return
    for store in _stores(module, node):
        value = module.assigned_to_attribute(store)
        if value is not None:
            yield value


def _stores(module: Module, attribute: ast.Attribute) -> Sequence[ast.Attribute]:
    """Where the file sets an attribute: of ``self`` the class's methods, of another object (``args.saves = ...``) all
    that set one of this name on a variable, because objects go by other names where they are passed."""
    cls = module.class_of_self(attribute.value)
    if cls is not None:
        return module.attribute_stores(cls, attribute.attr)
    others: dict[str, list[ast.Attribute]] = module.memoized(
        "attributes of others", module.tree, 0, lambda _tree, _depth: _stores_on_others(module)
    )
    return others.get(attribute.attr, ())


def _stores_on_others(module: Module) -> dict[str, list[ast.Attribute]]:
    found: dict[str, list[ast.Attribute]] = {}
    for node in module.nodes(ast.Attribute):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and module.class_of_self(node.value) is None:
                found.setdefault(node.attr, []).append(node)
    return found
