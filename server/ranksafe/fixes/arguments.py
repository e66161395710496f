"""Edits of call arguments, dictionary items and parameters, with their commas and lines."""

from __future__ import annotations

import ast

from ranksafe.fixes.places import Places, places_of
from ranksafe.fixes.statements import remove_statement
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

_Span = tuple[int, int]


def replace(module: Module, node: ast.AST, new_text: str) -> Edit:
    """Put ``new_text`` where the node stands."""
    return Edit(module.range_of(node), new_text)


def remove_keyword(module: Module, call: ast.Call, name: str) -> Edit | None:
    """Take ``name=...`` out of a call; None when the call has no such keyword."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return remove_argument(module, call, keyword)
    return None


def remove_argument(module: Module, call: ast.Call, argument: ast.expr | ast.keyword) -> Edit:
    """Take one argument (positional, keyword or ``**kw``) out of a call, with its comma; with its line where it stands
    on a line of its own."""
    places = places_of(module)
    elements: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    spans = sorted(_argument_span(module, places, element) for element in elements)
    opening = places.text.index("(", places.with_parentheses(*places.span(module, call.func))[1])
    target = _argument_span(module, places, argument)
    return _remove_element(places, spans, spans.index(target), opening + 1)


def remove_dictionary_item(module: Module, dictionary: ast.Dict, key: str) -> Edit | None:
    """Take the item with the constant key ``key`` out of a dictionary display; None when there is none."""
    places = places_of(module)
    spans = []
    wanted: int | None = None
    for index, (node, value) in enumerate(zip(dictionary.keys, dictionary.values, strict=True)):
        start, end = places.with_parentheses(*places.span(module, value))
        if node is None:
            start = places.text.rindex("**", 0, start)
        else:
            start = places.span(module, node)[0]
            if isinstance(node, ast.Constant) and node.value == key:
                wanted = index
        spans.append((start, end))
    if wanted is None:
        return None
    opening = places.span(module, dictionary)[0]
    return _remove_element(places, spans, wanted, opening + 1)


def remove_argument_value(module: Module, value: ast.expr) -> Edit | None:
    """Take an argument out, wherever its value is written: a keyword of the call (or of ``dict(...)``), an item of a
    dictionary display, or ``kw["name"] = value``. None for anything else (a positional argument, a shared variable)."""
    parent = module.parent(value)
    if isinstance(parent, ast.keyword):
        call = module.parent(parent)
        return remove_argument(module, call, parent) if isinstance(call, ast.Call) else None
    if isinstance(parent, ast.Dict):
        for key, item in zip(parent.keys, parent.values, strict=True):
            if item is value and isinstance(key, ast.Constant) and isinstance(key.value, str):
                return remove_dictionary_item(module, parent, key.value)
        return None
    if isinstance(parent, ast.Assign) and [type(target) for target in parent.targets] == [
        ast.Subscript
    ]:
        return remove_statement(module, parent)
    return None


def add_argument(module: Module, call: ast.Call, text: str) -> Edit:
    """Append an argument to a call (before ``**kw``, which Python allows anywhere among the keywords)."""
    places = places_of(module)
    elements: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    spans = sorted(_argument_span(module, places, element) for element in elements)
    function_end = places.with_parentheses(*places.span(module, call.func))[1]
    opening = places.text.index("(", function_end) + 1
    if spans and spans[0][0] < opening:
        # A lone generator shares its parentheses with the call: it needs its own beside another argument.
        start, end = spans[0]
        return places.edit(start, end, f"({places.text[start:end]}, {text})")
    return _append(places, spans, opening, text)


def add_parameter(
    module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef, text: str
) -> Edit:
    """Append a parameter, before ``**kwargs`` if there is one."""
    places = places_of(module)
    spans = _parameter_spans(module, places, function)
    return _append(places, spans, _parameter_opening(module, places, function), text)


def _append(places: Places, spans: list[_Span], opening: int, text: str) -> Edit:
    if not spans:
        rest = places.after_trivia(opening)
        separator = "" if places.text[rest] == ")" else ", "
        return places.edit(opening, opening, text + separator)
    start, end = spans[-1]
    if (
        places.starts_its_line(start)
        and places.position(start).line != places.position(opening).line
    ):
        separator = f",{places.newline}{places.indentation(start)}"
    else:
        separator = ", "
    return places.edit(end, end, separator + text)


def _remove_element(places: Places, spans: list[_Span], index: int, opening: int) -> Edit:
    start, end = spans[index]
    comma = places.after_trivia(end)
    has_comma = places.text[comma] == ","
    stop = comma + 1 if has_comma else end
    if places.starts_its_line(start) and places.ends_its_line(stop):
        return places.edit(places.line_start(start), places.next_line(stop), "")
    is_last = index + 1 == len(spans)
    if not is_last:
        return places.edit(start, _without_blanks(places, stop), "")
    if index == 0:
        return places.edit(opening, stop, "")
    previous_comma = places.text.index(",", places.after_trivia(spans[index - 1][1]))
    return places.edit(previous_comma, end, "")


def _without_blanks(places: Places, offset: int) -> int:
    while places.text[offset] in " \t":
        offset += 1
    return offset


def _argument_span(module: Module, places: Places, argument: ast.expr | ast.keyword) -> _Span:
    start, end = places.span(module, argument)
    if isinstance(argument, ast.keyword):
        return start, end
    return places.with_parentheses(start, end)


def _parameter_spans(
    module: Module, places: Places, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> list[_Span]:
    """Parameters in order, defaults included, ``**kwargs`` left out."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    pairs: list[tuple[ast.arg, ast.expr | None]] = list(zip(positional, defaults, strict=True))
    if arguments.vararg is not None:
        pairs.append((arguments.vararg, None))
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    spans = []
    for parameter, default in pairs:
        start, end = places.span(module, parameter)
        if default is not None:
            end = places.with_parentheses(*places.span(module, default))[1]
        spans.append((start, end))
    return spans


def _parameter_opening(
    module: Module, places: Places, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> int:
    start = places.span(module, function)[0]
    name = places.text.index(function.name, places.text.index("def", start) + 3)
    depth = 0
    for offset in range(name + len(function.name), len(places.text)):
        character = places.text[offset]
        if character == "(" and depth == 0:
            return offset + 1
        depth += (character == "[") - (character == "]")
    raise ValueError(f"no parameter list after def {function.name}")
