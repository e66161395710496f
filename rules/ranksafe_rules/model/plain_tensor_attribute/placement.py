"""Whether an expression makes a tensor on a GPU."""

from __future__ import annotations

import ast

from ranksafe.semantics.module import Module

_FACTORIES = frozenset(
    f"torch.{name}"
    for name in (
        *(
            "zeros",
            "ones",
            "empty",
            "full",
            "tensor",
            "arange",
            "linspace",
            "logspace",
            "eye",
            "rand",
        ),
        *(
            "randn",
            "randint",
            "randperm",
            "normal",
            "from_numpy",
            "as_tensor",
            "Tensor",
            "FloatTensor",
        ),
        *(
            "LongTensor",
            "BoolTensor",
            "HalfTensor",
            "zeros_like",
            "ones_like",
            "empty_like",
            "full_like",
        ),
    )
)
_MOVES = frozenset({"to", "cuda", "cpu", "type_as", "tolist", "item", "numpy"})
_METADATA = frozenset({"device", "dtype", "shape", "size", "dim", "ndim", "numel"})
_NOT_ON_GPU = frozenset({"cpu", "meta", None})
_MAXIMUM_DEPTH = 8


def is_tensor_on_gpu(module: Module, node: ast.expr) -> bool:
    """Whether ``node`` is certainly a tensor made by torch and put on a device other than the CPU."""
    return _is_tensor(module, node, 0) and _is_placed(module, node, 0)


def _is_tensor(module: Module, node: ast.expr, depth: int) -> bool:
    if depth > _MAXIMUM_DEPTH:
        return False
    if isinstance(node, ast.Name):
        values = module.values(node)
        return bool(values.known) and all(
            value.node is not node and _is_tensor(module, value.node, depth + 1)
            for value in values.known
        )
    if isinstance(node, ast.BinOp):
        return _is_tensor(module, node.left, depth + 1) or _is_tensor(module, node.right, depth + 1)
    if isinstance(node, (ast.UnaryOp, ast.Subscript)):
        inner = node.operand if isinstance(node, ast.UnaryOp) else node.value
        return _is_tensor(module, inner, depth + 1)
    if not isinstance(node, ast.Call):
        return False
    called = module.qualified_name(node.func)
    if called in _FACTORIES or called == "torch.autograd.Variable":
        return True
    if called is not None and called.startswith("torch.cuda.") and called.endswith("Tensor"):
        return True
    if called is not None and called.startswith("torch.") and called.count(".") == 1:
        return any(_is_tensor(module, item, depth + 1) for item in node.args)
    return isinstance(node.func, ast.Attribute) and _is_tensor(module, node.func.value, depth + 1)


def _is_placed(module: Module, node: ast.expr, depth: int) -> bool:
    """Whether a tensor expression is put on a GPU somewhere, and not taken back last."""
    if depth > _MAXIMUM_DEPTH:
        return False
    if isinstance(node, ast.Name):
        return any(
            value.node is not node and _is_placed(module, value.node, depth + 1)
            for value in module.values(node).known
        )
    if isinstance(node, ast.BinOp):
        return _is_placed(module, node.left, depth + 1) or _is_placed(module, node.right, depth + 1)
    if isinstance(node, (ast.UnaryOp, ast.Subscript)):
        inner = node.operand if isinstance(node, ast.UnaryOp) else node.value
        return _is_placed(module, inner, depth + 1)
    return isinstance(node, ast.Call) and _is_placed_by_call(module, node, depth)


def _is_placed_by_call(module: Module, node: ast.Call, depth: int) -> bool:
    for keyword in node.keywords:
        if keyword.arg == "device":
            return _is_gpu(module, keyword.value)
    if (module.qualified_name(node.func) or "").startswith("torch.cuda."):
        return True
    if isinstance(node.func, ast.Attribute) and module.qualified_name(node.func) is None:
        if node.func.attr == "cuda":
            return True
        if node.func.attr == "cpu":
            return False
        if node.func.attr == "to" and node.args and _looks_like_device(module, node.args[0]):
            return _is_gpu(module, node.args[0])
        return _is_placed(module, node.func.value, depth + 1)
    return any(_is_placed(module, item, depth + 1) for item in node.args)


def _looks_like_device(module: Module, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.Call):
        return module.qualified_name(node.func) == "torch.device"
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return "device" in name or name == "dev"


def _is_gpu(module: Module, node: ast.expr) -> bool:
    """False for what is certainly the CPU; a device that is handed in is taken for a GPU, since the module runs under
    DataParallel."""
    for value in module.values(node).known:
        inner: ast.expr = value.node
        if (
            isinstance(inner, ast.Call)
            and module.qualified_name(inner.func) == "torch.device"
            and inner.args
        ):
            inner = inner.args[0]
        if isinstance(inner, ast.Constant) and inner.value in _NOT_ON_GPU:
            return False
    return True


def needs_no_device(module: Module, load: ast.expr, depth: int = 0) -> bool:
    """Whether a tensor is brought to another device before it is used (``self.mask[:n].to(x.device)``, through a
    variable as well), or only asked for its shape and the like."""
    parent = module.parent(load)
    if isinstance(parent, ast.Subscript) and parent.value is load:
        return needs_no_device(module, parent, depth)
    if isinstance(parent, ast.Attribute):
        if parent.attr in _MOVES | _METADATA:
            return True
        call = module.parent(parent)
        return (
            isinstance(call, ast.Call)
            and call.func is parent
            and needs_no_device(module, call, depth)
        )
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name) and depth < 2:
        uses = [
            use
            for use in module.loads_of_same_name(parent.targets[0])
            if load in module.flow.assigned_values(use)
        ]
        return all(needs_no_device(module, use, depth + 1) for use in uses)
    return False
