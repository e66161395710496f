"""Which wrapper an expression stands for: DistributedDataParallel, nn.DataParallel, what `prepare` returns.

A wrapper is followed through variables, ``self.x``, the parameters and returns of the file's own functions and the
calls that give the same object back. Where an unwrapping may come between, nothing is said.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Final

from ranksafe.semantics.facts import DATA_PARALLEL
from ranksafe.semantics.guards import Guard, GuardKind
from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import Function
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared import trainer_methods
from ranksafe_rules._shared.call_chains import SAME_OBJECT
from ranksafe_rules._shared.chosen_branches import comes_to
from ranksafe_rules._shared.passed_arguments import passed_for
from ranksafe_rules._shared.settings import asks_for_setting

DISTRIBUTED: Final = "torch.nn.parallel.DistributedDataParallel"
ACCELERATOR: Final = "accelerate.Accelerator"
_MODULE: Final = ("torch.nn.Module", "transformers.PreTrainedModel", "peft.PeftModel")
_PREPARING: Final = frozenset({"prepare", "prepare_model"})
_OTHER_STRATEGIES: Final = frozenset(
    {
        "fsdp_plugin", "deepspeed_plugin", "deepspeed_plugins", "megatron_lm_plugin", "parallelism_config",
        "torch_tp_plugin",
    }
)  # fmt: skip
"""Arguments of Accelerator (1.15.0) with which `prepare` does not wrap in DistributedDataParallel."""
_FORWARDING: Final = frozenset({"torch.compile"})
"""Wrappers that hand every attribute on to what they wrap (torch 2.13.0 `_dynamo/eval_frame.py`, OptimizedModule)."""
_UNWRAPPING: Final = frozenset(
    {"unwrap_model", "extract_model_from_parallel", "de_parallel", "unwrap"}
)
_ASKING: Final = frozenset({"hasattr", "isinstance", "getattr", "type"})
_ABOUT_WRAPPERS: Final = re.compile(r"\bmodule\b|DataParallel|\bDDP\b")
_OPPOSITES: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.NotEq: ast.Eq,
    ast.IsNot: ast.Is,
    ast.LtE: ast.Gt,
    ast.Lt: ast.GtE,
    ast.NotIn: ast.In,
}
_TRAINER_METHODS: Final = ("compute_loss", "training_step")
"""What a Trainer (transformers 5.23.0) calls with the wrapped model while it trains."""
_MAXIMUM_DEPTH: Final = 5
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Wrapper(str, Enum):
    """What wraps a model."""

    DISTRIBUTED = "DistributedDataParallel"
    DATA_PARALLEL = "DataParallel"
    PREPARED = "prepare"
    """`Accelerator.prepare`: DistributedDataParallel where there are several processes."""
    TRAINER = "Trainer"
    """A parameter through which a Trainer hands over the wrapped model."""


@dataclass(frozen=True, slots=True)
class Wrapped:
    """One wrapper that an expression may stand for."""

    how: Wrapper
    place: ast.expr | ast.arg
    """The call that wraps, or the parameter."""
    model: ast.expr | None
    """What is wrapped."""
    guards: tuple[Guard, ...]
    """The conditions on the way from there."""
    apart: tuple[Guard, ...] = ()
    """Those of them, on anything but devices and processes, under which an attribute gets the wrapper elsewhere than in
    the method that uses it: it may well be used in a run in which they do not hold."""


@dataclass(frozen=True, slots=True)
class Wraps:
    """All wrappers an expression may stand for; ``only``: it is nothing else; ``unwrapped``: some way to it takes a
    wrapper off, so that the others cannot be trusted."""

    known: tuple[Wrapped, ...]
    only: bool
    unwrapped: bool = False


NOTHING: Final = Wraps((), False)
_UNWRAPPED: Final = Wraps((), False, True)


def wraps_of(module: Module, expression: ast.expr) -> Wraps:
    """See `Wraps`. The conditions at ``expression`` itself are taken into account: where they contradict a wrapper's,
    or ask what the object is, it is left out."""
    found = _resolve(module, expression, _MAXIMUM_DEPTH)
    if not found.known or found.unwrapped:
        return NOTHING
    if was_asked(module, expression):
        return NOTHING
    here = module.guards(expression)
    kept = tuple(
        _settled(module, item, here) for item in found.known if _holds_at(module, item, here)
    )
    if _is_handed_over(module, expression):
        kept = tuple(item for item in kept if may_meet(module, expression, item))
    return Wraps(kept, found.only)


def _settled(module: Module, wrapped: Wrapped, here: tuple[Guard, ...]) -> Wrapped:
    """Without what the conditions at the use ask, too."""
    if not wrapped.apart:
        return wrapped
    known = {_normal(module, guard) for guard in here}
    open_still = (guard for guard in wrapped.apart if _normal(module, guard) not in known)
    return replace(wrapped, apart=tuple(open_still))


def may_meet(module: Module, use: ast.expr, wrapped: Wrapped) -> bool:
    """False where a caller wraps under a condition of its own, and settings lead to ``use`` in the function that it
    calls: whether both hold at once, nobody sees."""
    if all(guard.kind is not GuardKind.OTHER for guard in wrapped.guards):
        return True
    return not any(asks_for_setting(module, guard) for guard in module.guards(use))


def _is_handed_over(module: Module, expression: ast.expr) -> bool:
    return isinstance(expression, ast.Name) and all(
        isinstance(item, ast.arg) for item in module.bindings(expression)[1]
    )


def was_asked(module: Module, expression: ast.expr) -> bool:
    """Whether a condition around an expression, or before it, finds out what the object is."""
    return any(
        _asks_about(_test_of(module, guard), expression) for guard in module.guards(expression)
    ) or _was_asked_before(module, expression)


def wraps_if_asked(module: Module, expression: ast.expr) -> Wraps:
    """The same where a condition around ``expression`` may have found out that it is wrapped."""
    found = _resolve(module, expression, _MAXIMUM_DEPTH)
    return NOTHING if found.unwrapped else found


def is_possible(module: Module, guards: tuple[Guard, ...]) -> bool:
    """False where conditions contradict each other, or where one asks whether the object is a wrapper."""
    seen: dict[str, bool] = {}
    for guard in guards:
        if _asks_for_wrapper(_test_of(module, guard)):
            return False
        text, positive = _normal(module, guard)
        if seen.setdefault(text, positive) != positive:
            return False
    return True


def _holds_at(module: Module, wrapped: Wrapped, here: tuple[Guard, ...]) -> bool:
    if not is_possible(module, (*wrapped.guards, *here)):
        return False
    if not wrapped.guards and wrapped.how in (Wrapper.DISTRIBUTED, Wrapper.DATA_PARALLEL):
        return True
    # Two conditions on the launch in other words may mean the same, or the opposite.
    known = {_normal(module, guard) for guard in wrapped.guards}
    return all(
        _normal(module, guard) in known for guard in here if _is_about_the_launch(module, guard)
    )


def _is_about_the_launch(module: Module, guard: Guard) -> bool:
    if guard.kind is GuardKind.RANK:
        return "-1" in unparsed(_test_of(module, guard))
    return guard.kind in (GuardKind.LAUNCH, GuardKind.DEVICE_COUNT)


def _test_of(module: Module, guard: Guard) -> ast.expr:
    """What a condition asks, where it goes by a name, too."""
    test = guard.test
    if isinstance(test, ast.Name):
        assigned = module.flow.assigned_values(test)
        return assigned[0] if len(assigned) == 1 else test
    return test


def _normal(module: Module, guard: Guard) -> tuple[str, bool]:
    """The text of a condition, one for ``a == b`` and ``a != b``, and whether it holds."""
    test = _test_of(module, guard)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        opposite = _OPPOSITES.get(type(test.ops[0]))
        if opposite is not None:
            turned = ast.Compare(test.left, [opposite()], test.comparators)
            return unparsed(turned), not guard.positive
    return unparsed(test), guard.positive


def _asks_for_wrapper(test: ast.expr) -> bool:
    return any(_ABOUT_WRAPPERS.search(unparsed(call)) for call in _asking_calls(test))


def _asks_about(test: ast.expr, expression: ast.expr) -> bool:
    text = unparsed(expression)
    return any(call.args and unparsed(call.args[0]) == text for call in _asking_calls(test))


def _was_asked_before(module: Module, expression: ast.expr) -> bool:
    """Whether an ``if`` before it, one arm of which leaves, found out what the object is."""
    child: ast.AST = expression
    parent = module.parent(child)
    while parent is not None and not isinstance(child, _FUNCTIONS):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and child in block:
                for statement in block[: block.index(child)]:
                    if isinstance(statement, ast.If) and _asks_about(statement.test, expression):
                        arms = (statement.body, statement.orelse)
                        if any(arm and isinstance(arm[-1], _LEAVING) for arm in arms):
                            return True
        child, parent = parent, module.parent(parent)
    return False


def _asking_calls(test: ast.expr) -> Iterator[ast.Call]:
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in _ASKING:
                yield node


def is_prepare(module: Module, call: ast.Call) -> bool:
    """Whether a call is `Accelerator.prepare` or `prepare_model`."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _PREPARING:
        return False
    receiver = module.type_of(function.value)
    if receiver is not None:
        return receiver == ACCELERATOR
    # An accelerator that is handed over without an annotation has nothing but its name.
    return "accelerator" in unparsed(function.value).lower().rpartition(".")[2]


def prepares_for_other_strategies(module: Module) -> bool:
    """Whether an Accelerator of the file is set up for FSDP, DeepSpeed or another strategy than DDP, there or by every
    command that starts it."""
    if any(keyword.arg in _OTHER_STRATEGIES for keyword in _given_to_accelerators(module)):
        return True
    commands = module.launch_commands()
    return bool(commands) and all(command.other_strategy for command in commands)


def may_prepare_for_other_strategies(module: Module) -> bool:
    """Whether an Accelerator of the file is given arguments that nobody sees: ``Accelerator(**options)``."""
    return any(keyword.arg is None for keyword in _given_to_accelerators(module))


def _given_to_accelerators(module: Module) -> Iterator[ast.keyword]:
    for call in module.calls_written("Accelerator"):
        yield from call.keywords


def _resolve(module: Module, node: ast.expr, depth: int) -> Wraps:
    if depth == 0:
        return NOTHING
    if isinstance(node, ast.Name):
        return _of_name(module, node, depth)  # Hardly asked for twice; its bindings are.
    found: Wraps = module.memoized(
        "wraps", node, depth, lambda _node, _depth: _read(module, node, depth)
    )
    return found


def _read(module: Module, node: ast.expr, depth: int) -> Wraps:
    if isinstance(node, ast.Call):
        return _of_call(module, node, depth)
    if isinstance(node, ast.Attribute):
        return _of_attribute(module, node, depth)
    if isinstance(node, ast.IfExp):
        return _merged(
            [
                _guarded(module, _resolve(module, node.body, depth), module.guards(node.body)[:1]),
                _guarded(
                    module, _resolve(module, node.orelse, depth), module.guards(node.orelse)[:1]
                ),
            ]
        )
    return NOTHING


def _merged(parts: list[Wraps]) -> Wraps:
    known = tuple(item for part in parts for item in part.known)
    only = bool(parts) and all(part.only for part in parts)
    return Wraps(known, only, any(part.unwrapped for part in parts))


def _guarded(module: Module, wraps: Wraps, guards: tuple[Guard, ...]) -> Wraps:
    if not guards or not wraps.known:
        return wraps
    known = tuple(replace(item, guards=(*item.guards, *guards)) for item in wraps.known)
    possible = tuple(item for item in known if is_possible(module, item.guards))
    return Wraps(possible, wraps.only, wraps.unwrapped)


# -- calls


def _of_call(module: Module, call: ast.Call, depth: int) -> Wraps:
    name = module.qualified_name(call.func)
    if name == DISTRIBUTED:
        return _one(Wrapper.DISTRIBUTED, call, module.argument_node(call, "module", 0))
    if name == DATA_PARALLEL:
        return _one(Wrapper.DATA_PARALLEL, call, module.argument_node(call, "module", 0))
    if name in _FORWARDING:
        return _resolve(module, call.args[0], depth - 1) if call.args else NOTHING
    if unwraps(call):
        return _UNWRAPPED
    if is_prepare(module, call):
        return _prepared(module, call, 0) if len(call.args) == 1 else NOTHING
    function = module.function_called(call)
    if function is not None:
        return _as_called(module, _returned(module, function, None, depth), call)
    if isinstance(call.func, ast.Attribute) and call.func.attr in SAME_OBJECT:
        return _resolve(module, call.func.value, depth - 1)
    return NOTHING


def _as_called(module: Module, wraps: Wraps, call: ast.Call) -> Wraps:
    """What of the wrappers that a function returns it returns for what this call passes."""
    kept = tuple(item for item in wraps.known if comes_to(module, item.place, module, call))
    return replace(wraps, known=kept)


def _one(how: Wrapper, place: ast.expr | ast.arg, model: ast.expr | None) -> Wraps:
    return Wraps((Wrapped(how, place, model, ()),), True)


def unwraps(call: ast.Call) -> bool:
    """Whether a call, as far as its name tells, gives the model inside a wrapper."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr in _UNWRAPPING
    if not isinstance(function, ast.Name):
        return False
    if function.id == "getattr":
        return len(call.args) > 1 and unparsed(call.args[1]).strip("'\"") == "module"
    return function.id in _UNWRAPPING


def _returned(
    module: Module, function: ast.AST, element: tuple[int, int] | None, depth: int
) -> Wraps:
    """What a function returns, or (with ``element``: index and length) one element of the tuples it returns."""
    parts = []
    for item in module.returns_of(function):
        value = item.value
        if element is not None:
            index, length = element
            values = value.elts if isinstance(value, ast.Tuple) else []
            value = values[index] if len(values) == length else None
        part = NOTHING if value is None else _resolve(module, value, depth - 1)
        parts.append(_guarded(module, part, module.guards(item)))
    return _merged(parts)


def _prepared(module: Module, call: ast.Call, index: int) -> Wraps:
    """What `prepare` returns at a place: a wrapper where a model that is trained was given."""
    if index >= len(call.args) or any(isinstance(item, ast.Starred) for item in call.args):
        return NOTHING
    if any(item.arg == "evaluation_mode" for item in call.keywords):
        return NOTHING
    model = call.args[index]
    if not isinstance(model, (ast.Name, ast.Attribute)) or prepares_for_other_strategies(module):
        return NOTHING
    if not is_trained_model(module, model):
        return NOTHING
    return _one(Wrapper.PREPARED, call, model)


def is_trained_model(module: Module, model: ast.expr) -> bool:
    """Whether the file shows that an object is a model whose parameters, or some, get gradients.

    Accelerate leaves a model without them unwrapped (accelerate 1.15.0 `prepare_model`).
    """
    text = unparsed(model)
    if _is_frozen(module, text):
        return False
    if module.is_subclass(module.type_of(model), *_MODULE):
        return True
    return any(
        isinstance(call.func, ast.Attribute) and unparsed(call.func.value) == text
        for word in ("parameters", "named_parameters")
        for call in module.calls_written(word)
    )


def _is_frozen(module: Module, text: str) -> bool:
    """``x.requires_grad_(False)``, ``for p in x.parameters(): p.requires_grad = False``, also of a part of x."""
    for call in module.calls_written("requires_grad_"):
        if isinstance(call.func, ast.Attribute):
            frozen = unparsed(call.func.value)
            if frozen == text and _is_false(call):
                return True
    for word in ("parameters", "named_parameters"):
        for call in module.calls_written(word):
            loop = module.parent(call)
            if isinstance(call.func, ast.Attribute) and isinstance(loop, ast.For):
                if unparsed(call.func.value) == text and "requires_grad" in unparsed(loop):
                    return True
    return False


def _is_false(call: ast.Call) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False


# -- names


def _of_name(module: Module, name: ast.Name, depth: int) -> Wraps:
    scope, bindings = module.bindings(name)
    if scope is None or not bindings or isinstance(bindings[0], (ast.alias, ast.ClassDef)):
        return NOTHING
    if not any(part.known or part.unwrapped for part in _bound(module, bindings, depth)):
        return NOTHING  # Nearly every name: which of the bindings reach it need not be asked.
    inside = _is_in(module, name, scope.node)
    use = name if inside else _call_of_enclosing(module, name, scope.node)
    if use is None:
        return NOTHING
    reaching = module.flow.reaching(use, scope, bindings)
    reached = _bound(module, [binding for binding, _ in reaching], depth)
    parts = [
        (binding, _guarded(module, wraps, guards))
        for (binding, guards), wraps in zip(reaching, reached, strict=True)
    ]
    if any(part.known and _may_be_replaced(module, binding, parts) for binding, part in parts):
        return NOTHING
    return _merged([part for _, part in parts])


def _may_be_replaced(module: Module, wrap: ast.AST, parts: list[tuple[ast.AST, Wraps]]) -> bool:
    """Whether the name may get something that is no wrapper after it got the wrapper: under which condition that is
    not the case, only the author knows."""
    own = module.guards(wrap)
    return any(
        module.order_of(other) > module.order_of(wrap)
        and not part.known
        and is_possible(module, (*own, *module.guards(other)))
        for other, part in parts
    )


def _is_in(module: Module, name: ast.Name, scope: ast.AST) -> bool:
    """Whether a name is used in the function (or the module-level code) that binds it."""
    function: ast.AST | None = module.parent(name)
    while function is not None and not isinstance(
        function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
    ):
        function = module.parent(function)
    return function is scope or (isinstance(function, ast.Module) and isinstance(scope, ast.Module))


def _call_of_enclosing(module: Module, name: ast.Name, scope: ast.AST) -> ast.Call | None:
    """For a variable of an outer function or of the module: the first call of the function that uses it, where it is
    called from the scope of the variable only."""
    function = module.enclosing_function(name)
    if function is None or isinstance(module.parent(function), ast.ClassDef):
        return None
    calls = module.calls_written(function.name)
    outer = scope if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    if not calls or any(module.enclosing_function(call) is not outer for call in calls):
        return None
    return min(calls, key=module.order_of)


def _bound(module: Module, bindings: Iterable[ast.AST], depth: int) -> list[Wraps]:
    return [
        module.memoized("wraps bound", binding, depth, partial(_of_binding, module))
        for binding in bindings
    ]


def _of_binding(module: Module, binding: ast.AST, depth: int) -> Wraps:
    if isinstance(binding, ast.arg):
        return _of_parameter(module, binding, depth)
    if not isinstance(binding, ast.Name):
        return NOTHING
    assigned = module.assigned_value(binding)
    if assigned is not None:
        return _resolve(module, assigned, depth - 1)
    return _of_element(module, binding, depth)


def _of_parameter(module: Module, parameter: ast.arg, depth: int) -> Wraps:
    function = module.parent(parameter)
    method = (
        None
        if function is None
        else trainer_methods.override_of(module, function, *_TRAINER_METHODS)
    )
    if method is not None:
        names = trainer_methods.positional_names(method)
        if len(names) > 1 and names[1] == parameter.arg:
            return _one(Wrapper.TRAINER, parameter, None)
    parts = [
        _guarded(module, _resolve(module, argument, depth - 1), module.guards(argument))
        for argument in passed_for(module, function, parameter.arg)
    ]
    # Another call may well hand over the unwrapped model.
    return Wraps(_merged([part for part in parts if not part.unwrapped]).known, False)


def _of_element(module: Module, target: ast.expr, depth: int) -> Wraps:
    """``model, optimizer = accelerator.prepare(model, optimizer)``, ``model, loader = build()``."""
    unpacked = module.parent(target)
    statement = None if unpacked is None else module.parent(unpacked)
    if not isinstance(unpacked, (ast.Tuple, ast.List)) or not isinstance(statement, ast.Assign):
        return NOTHING
    call = statement.value
    if not isinstance(call, ast.Call) or any(isinstance(e, ast.Starred) for e in unpacked.elts):
        return NOTHING
    index = next(i for i, item in enumerate(unpacked.elts) if item is target)
    if is_prepare(module, call):
        return _prepared(module, call, index)
    function = module.function_called(call)
    if function is None:
        return NOTHING
    found = _returned(module, function, (index, len(unpacked.elts)), depth)
    return _as_called(module, found, call)


# -- attributes of self


def _of_attribute(module: Module, node: ast.Attribute, depth: int) -> Wraps:
    cls = module.class_of_self(node.value)
    if cls is None:
        return _UNWRAPPED if node.attr == "module" else NOTHING
    stores = module.attribute_stores(cls, node.attr)
    wraps = [(store, _of_store(module, store, depth)) for store in stores]
    if any(part.unwrapped for _, part in wraps) or not any(part.known for _, part in wraps):
        return NOTHING
    here = module.enclosing_function(node)
    holders = {module.enclosing_function(store) for store, part in wraps if part.known}
    if len(holders) != 1:
        return NOTHING
    holder = holders.pop()
    if holder is None or not _runs_before(module, cls, holder, here, node, wraps):
        return NOTHING
    on_its_call = _guards_of_setup(module, cls, holder, here)
    parts: list[Wraps] = []
    for store, part in reversed(wraps):
        where = module.enclosing_function(store)
        if where is not holder:
            if where is None or where.name != "__init__":
                return NOTHING
            continue
        if where is here and module.order_of(store) > module.order_of(node):
            continue
        guards = module.guards(store)
        if on_its_call is None:
            parts.append(_guarded(module, part, guards))
        else:
            wraps_it = _guarded(module, part, (*guards, *on_its_call))
            parts.append(_made_apart(module, wraps_it, module.guards(node)))
        if not guards:
            break
    return _merged(parts)


def _made_apart(module: Module, wraps: Wraps, here: tuple[Guard, ...]) -> Wraps:
    """With the conditions that ``here``, those of the use, do not ask as well."""
    known = (replace(item, apart=tuple(filter(_is_choice, item.guards))) for item in wraps.known)
    return replace(wraps, known=tuple(_settled(module, item, here) for item in known))


def _is_choice(guard: Guard) -> bool:
    return guard.kind is GuardKind.OTHER and not guard.is_demanded


def _guards_of_setup(
    module: Module, cls: ast.ClassDef, holder: Function, here: ast.AST | None
) -> tuple[Guard, ...] | None:
    """The conditions under which an object that is made calls the method ``holder``; None where the use in ``here``
    follows the wrapping in the same flow of statements, so that its conditions may be taken to hold."""
    if here is holder or not isinstance(here, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    if here.name == "__init__" or _calls_within(module, cls, here.name, holder):
        return None
    setups = _calls_while_made(module, cls, holder.name)
    return module.guards(setups[0]) if setups else ()


def _of_store(module: Module, store: ast.Attribute, depth: int) -> Wraps:
    assigned = module.assigned_to_attribute(store)
    if assigned is not None:
        return _resolve(module, assigned, depth - 1)
    return _of_element(module, store, depth)


def _runs_before(
    module: Module,
    cls: ast.ClassDef,
    holder: ast.AST,
    here: ast.AST | None,
    use: ast.AST,
    wraps: list[tuple[ast.Attribute, Wraps]],
) -> bool:
    """Whether the wrapping in the method ``holder`` has run where ``use`` in ``here`` does."""
    assert isinstance(holder, (ast.FunctionDef, ast.AsyncFunctionDef))
    first = min(module.order_of(store) for store, part in wraps if part.known)
    if here is holder:
        return first < module.order_of(use)
    if not isinstance(here, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    if here.name == "__init__":
        return any(
            module.order_of(call) < module.order_of(use)
            for call in _calls_on_self(module, cls, holder.name)
            if module.enclosing_function(call) is here
        )
    calls = _calls_within(module, cls, here.name, holder)
    if calls:
        return all(module.order_of(call) > first for call in calls)
    if holder.name == "__init__":
        return True
    setups = _calls_while_made(module, cls, holder.name)
    return bool(setups) and all(
        module.order_of(call) > module.order_of(setups[0])
        for call in _calls_while_made(module, cls, here.name)
    )


def _calls_within(
    module: Module, cls: ast.ClassDef, method: str, holder: ast.AST
) -> list[ast.Call]:
    return [
        call
        for call in _calls_on_self(module, cls, method)
        if module.enclosing_function(call) is holder
    ]


def _calls_while_made(module: Module, cls: ast.ClassDef, method: str) -> list[ast.Call]:
    """The calls of a method in ``__init__``, in source order."""
    calls = [
        call
        for call in _calls_on_self(module, cls, method)
        if getattr(module.enclosing_function(call), "name", "") == "__init__"
    ]
    return sorted(calls, key=module.order_of)


def _calls_on_self(module: Module, cls: ast.ClassDef, method: str) -> Iterator[ast.Call]:
    for call in module.calls_written(method):
        if isinstance(call.func, ast.Attribute) and module.class_of_self(call.func.value) is cls:
            yield call
