"""Which parameters of a function are certainly tensors, by how it uses them."""

from __future__ import annotations

import ast

from ranksafe.semantics.module import Module

from ranksafe_rules._shared.replicated_class import Function, ReplicatedClass

_TENSOR_ATTRIBUTES = frozenset(
    {
        "size",
        "shape",
        "device",
        "dtype",
        "dim",
        "ndim",
        "view",
        "reshape",
        "permute",
        "transpose",
        "unsqueeze",
    }
    | {
        "squeeze",
        "flatten",
        "contiguous",
        "detach",
        "new_zeros",
        "new_ones",
        "new_tensor",
        "numel",
        "requires_grad",
    }
    | {"float", "half", "long", "mean", "sum", "masked_fill", "softmax", "expand", "is_cuda"}
)
_TENSOR_TYPES = frozenset(
    {"torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.BoolTensor"}
)


def tensor_inputs(view: ReplicatedClass, function: Function, before: ast.AST) -> list[str]:
    """Names of the parameters that are tensors and still the caller's (or made of them) at ``before``, in order."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args][1:]
    with_default = (
        set(positional[len(positional) - len(arguments.defaults) :])
        if arguments.defaults
        else set()
    )
    with_default |= {
        item
        for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    }
    names = [item for item in [*positional, *arguments.kwonlyargs] if item not in with_default]
    return [
        item.arg
        for item in names
        if _is_tensor(view, function, item) and _is_kept(view, function, item.arg, before)
    ]


def _is_tensor(view: ReplicatedClass, function: Function, parameter: ast.arg) -> bool:
    if parameter.annotation is not None:
        return view.module.types.of_annotation(parameter.annotation) in _TENSOR_TYPES
    return any(
        use.id == parameter.arg
        and isinstance(use.ctx, ast.Load)
        and _is_used_as_tensor(view.module, use)
        for use in view.nodes(ast.Name, function)
    )


def _is_used_as_tensor(module: Module, use: ast.Name) -> bool:
    parent = module.parent(use)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _TENSOR_ATTRIBUTES
    if isinstance(parent, ast.Call) and parent.args and parent.args[0] is use:
        called = module.qualified_name(parent.func) or module.type_of(parent.func) or ""
        return called.startswith("torch.nn.") and called != "torch.nn.Module"
    return False


def _is_kept(view: ReplicatedClass, function: Function, name: str, before: ast.AST) -> bool:
    """Whether nothing but a tensor made of the parameter was assigned to its name before the place."""
    module = view.module
    for node in view.nodes(ast.Name, function):
        if node.id != name or not isinstance(node.ctx, ast.Store):
            continue
        if module.order_of(node) > module.order_of(before):
            continue
        statement = module.parent(node)
        if not isinstance(statement, ast.Assign) or not _mentions(module, statement.value, name):
            return False
        if not isinstance(statement.value, (ast.Call, ast.BinOp, ast.Subscript)):
            return False
    return True


def _mentions(module: Module, expression: ast.expr, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name
        for node in module.nodes(ast.Name, inside=expression)
    )
