"""Losses that nn.DataParallel has gathered from its replicas, and that nothing has averaged."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Final

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.caught import handlers_around
from ranksafe_rules._shared.replicas import listed_devices
from ranksafe_rules._shared.wrapped_models import Wrapped, Wrapper, wraps_of

_ELEMENTWISE: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_LOSS: Final = re.compile(r"loss", re.IGNORECASE)
_MAXIMUM_DEPTH: Final = 8
_ERRORS: Final = frozenset({"RuntimeError", "Exception", "BaseException"})
_PRETRAINED: Final = "transformers.PreTrainedModel"


@dataclass(frozen=True, slots=True)
class ReplicaLosses:
    """What a backward starts from."""

    loss: ast.expr
    """As it is written there."""
    forward: ast.Call
    wrapped: Wrapped


def replica_losses(module: Module, backward: ast.Call) -> ReplicaLosses | None:
    """The gathered losses that a backward without a gradient of its own starts from, None where they may have been
    averaged."""
    function = backward.func
    if not isinstance(function, ast.Attribute) or backward.args:
        return None
    if any(keyword.arg in (None, "gradient") for keyword in backward.keywords):
        return None
    if _is_tried_again(module, backward):
        return None
    loss = _unscaled(function.value)
    found = _Search(module).gathered(loss, _MAXIMUM_DEPTH)
    return None if found is None else ReplicaLosses(loss, *found)


def _is_tried_again(module: Module, backward: ast.Call) -> bool:
    """Whether a handler around it starts another backward."""
    return any(
        module.is_inside(other, handler)
        for handler in handlers_around(module, backward, _ERRORS)
        for other in module.calls_written("backward")
    )


def _unscaled(node: ast.expr) -> ast.expr:
    """``loss`` of ``scaler.scale(loss)``, which keeps its shape (torch 2.13.0 `amp/grad_scaler.py`)."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "scale" and len(node.args) == 1 and not node.keywords:
            return node.args[0]
    return node


_Found = tuple[ast.Call, Wrapped]


class _Search:
    """For the forward that a backward's losses come from. Each place is looked at once: a loss that is added to under
    many conditions comes from itself on many ways."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[tuple[ast.AST, int], _Found | None] = {}

    def gathered(self, node: ast.expr, depth: int) -> _Found | None:
        """The forward of which an expression is the output, or an element of it, or computed from it element by
        element."""
        if depth == 0:
            return None
        if isinstance(node, ast.Name):
            return self._of_name(node, depth)
        if isinstance(node, ast.Call):
            return self._of_call(node, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ELEMENTWISE):
            return self.gathered(node.left, depth - 1) or self.gathered(node.right, depth - 1)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.gathered(node.operand, depth - 1)
        if isinstance(node, ast.Attribute) and _LOSS.search(node.attr):
            return self.gathered(node.value, depth - 1)
        if isinstance(node, ast.Subscript):
            return self._of_element(node, depth)
        return None

    def _of_call(self, call: ast.Call, depth: int) -> _Found | None:
        if isinstance(call.func, (ast.Name, ast.Attribute)):
            for wrapped in wraps_of(self._module, call.func).known:
                if wrapped.how is Wrapper.DATA_PARALLEL and not _has_one_device(
                    self._module, wrapped
                ):
                    return call, wrapped
        function = self._module.function_called(call)
        if function is None:
            return None
        parts = [
            None if item.value is None else self.gathered(item.value, depth - 1)
            for item in self._module.returns_of(function)
        ]
        return parts[0] if parts and all(part is not None for part in parts) else None

    def _of_element(self, node: ast.Subscript, depth: int) -> _Found | None:
        """``output["loss"]``, and ``output[0]`` where the output is certainly not a loss itself."""
        if not isinstance(node.slice, ast.Constant):
            return None
        found = self.gathered(node.value, depth - 1)
        if found is None or isinstance(node.slice.value, str):
            return found
        return found if _returns_several(self._module, found[1]) else None

    def _of_name(self, use: ast.Name, depth: int) -> _Found | None:
        """All values that a name may have at a place have to be losses of replicas."""
        scope, bindings = self._module.bindings(use)
        if scope is None or not bindings:
            return None
        reaching = [
            item
            for item in self._module.flow.reaching(use, scope, bindings)
            if not self._module.is_inside(use, self._module.parent(item[0]) or item[0])
        ]
        earlier = [
            item for item in reaching if self._module.order_of(item[0]) < self._module.order_of(use)
        ]
        if any(not guards for _, guards in earlier):
            # Nothing is left of what an iteration before has assigned.
            reaching = earlier
        found = [self._of_binding(binding, depth) for binding, _ in reaching]
        return found[0] if found and all(item is not None for item in found) else None

    def _of_binding(self, binding: ast.AST, depth: int) -> _Found | None:
        if not isinstance(binding, ast.Name):
            return None
        if (binding, depth) not in self._known:
            self._known[binding, depth] = self._assigned(binding, depth)
        return self._known[binding, depth]

    def _assigned(self, binding: ast.Name, depth: int) -> _Found | None:
        statement = self._module.parent(binding)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, _ELEMENTWISE):
            before = self._of_name(binding, depth - 1) if depth > 1 else None
            return before or self.gathered(statement.value, depth - 1)
        if isinstance(statement, (ast.Tuple, ast.List)):
            unpacked, statement = statement, self._module.parent(statement)
            if not isinstance(statement, ast.Assign) or unpacked not in statement.targets:
                return None
            return self._of_tuple(unpacked, binding, statement.value, depth)
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            return None if statement.value is None else self.gathered(statement.value, depth - 1)
        return None

    def _of_tuple(
        self, target: ast.Tuple | ast.List, name: ast.Name, value: ast.expr, depth: int
    ) -> _Found | None:
        """``loss, logits = model(x)``; of ``a, b = f(x)`` with a function of the file, the element it returns."""
        if not isinstance(value, ast.Call) or any(isinstance(e, ast.Starred) for e in target.elts):
            return None
        function = self._module.function_called(value)
        if function is None:
            return self._of_call(value, depth - 1)
        index = next(i for i, item in enumerate(target.elts) if item is name)
        parts = []
        for item in self._module.returns_of(function):
            if not isinstance(item.value, ast.Tuple) or len(item.value.elts) != len(target.elts):
                return None
            parts.append(self.gathered(item.value.elts[index], depth - 1))
        return parts[0] if parts and all(part is not None for part in parts) else None


def _has_one_device(module: Module, wrapped: Wrapped) -> bool:
    """``DataParallel(model, device_ids=[0])`` calls the model itself."""
    return not isinstance(wrapped.place, ast.Call) or listed_devices(module, wrapped.place) == 1


def _returns_several(module: Module, wrapped: Wrapped) -> bool:
    """Whether a model gives tuples: one of transformers, or one whose forward can be read here."""
    if wrapped.model is None:
        return False
    kind = module.type_of(wrapped.model)
    if kind is not None and (
        kind.startswith("transformers.") or module.is_subclass(kind, _PRETRAINED)
    ):
        return True
    cls = module.class_named(kind)
    forward = None if cls is None else module.method(cls, "forward")
    returns = [] if forward is None else module.returns_of(forward)
    return bool(returns) and all(isinstance(item.value, ast.Tuple) for item in returns)
