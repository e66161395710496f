"""Which class an object belongs to, as far as the source shows it."""

from __future__ import annotations

import ast
import re

from ranksafe.semantics.control_flow import ControlFlow
from ranksafe.semantics.imports import Imports
from ranksafe.semantics.libraries import ancestors_of, is_known_class
from ranksafe.semantics.names import Names
from ranksafe.semantics.structure import ModuleStructure

PRETRAINED_MODEL = "transformers.PreTrainedModel"
_MAXIMUM_DEPTH = 7
_MOST_ANCESTORS = 100
_NOT_MODELS = re.compile(
    r"(Tokenizer|TokenizerFast|Processor|Config|FeatureExtractor|Args|Arguments)$"
)
_SAME_OBJECT = frozenset(
    {"to", "cuda", "cpu", "half", "float", "bfloat16", "double", "train", "eval", "requires_grad_"}
)
_PEFT = {"peft.get_peft_model": "peft.PeftModel", "torch.compile": None}


class Types:
    """Types of one module's expressions."""

    def __init__(
        self, module: ModuleStructure, flow: ControlFlow, names: Names, imports: Imports
    ) -> None:
        self._module = module
        self._flow = flow
        self._names = names
        self._imports = imports

    def of(self, node: ast.expr, depth: int = 0) -> str | None:
        """See `Module.type_of`."""
        if depth > _MAXIMUM_DEPTH:
            return None
        if isinstance(node, (ast.Call, ast.Name, ast.Attribute)):
            answer: str | None = self._module.memoized("type", node, depth, self._compute)
            return answer
        return self._compute(node, depth)

    def _compute(self, node: ast.expr, depth: int) -> str | None:
        if isinstance(node, ast.Call):
            return self._of_call(node, depth)
        if isinstance(node, ast.Name):
            return self._of_name(node, depth)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node, depth)
        if isinstance(node, ast.IfExp):
            return _common([self.of(node.body, depth + 1), self.of(node.orelse, depth + 1)])
        if isinstance(node, ast.NamedExpr):
            return self.of(node.value, depth + 1)
        if isinstance(node, ast.Await):
            return self.of(node.value, depth + 1)
        return None

    def _of_call(self, node: ast.Call, depth: int) -> str | None:
        name = self._names.qualified(node.func)
        if name is not None:
            if name in _PEFT:
                return _PEFT[name] or (self.of(node.args[0], depth + 1) if node.args else None)
            owner, _, last = name.rpartition(".")
            if last in ("from_pretrained", "from_config") and owner:
                return _loaded_class(owner)
            if is_known_class(name) or self._names.class_named(name) is not None:
                return name
            if self._imports.is_project_class(name):
                return name
        function = self._names.function_called(node)
        if function is not None:
            return self._returned_by(function, depth)
        if isinstance(node.func, ast.Attribute):
            return self._of_method_call(node, node.func, depth)
        if name is not None and name.rpartition(".")[2][:1].isupper():
            return name
        return None

    def _of_method_call(self, node: ast.Call, function: ast.Attribute, depth: int) -> str | None:
        if function.attr in _SAME_OBJECT:
            return self.of(function.value, depth + 1)
        receiver = self.of(function.value, depth + 1)
        if function.attr in ("prepare", "prepare_model") and receiver == "accelerate.Accelerator":
            return self.of(node.args[0], depth + 1) if len(node.args) == 1 else None
        if function.attr == "unwrap_model" and node.args:
            return self.of(node.args[0], depth + 1)
        name = self._names.qualified(function)
        if name is not None and name.rpartition(".")[2][:1].isupper():
            return name
        return None

    def _returned_by(self, function: ast.AST, depth: int) -> str | None:
        returns = self._module.returns_of(function)
        types = [self.of(item.value, depth + 1) for item in returns if item.value is not None]
        return _common(types)

    def _of_name(self, node: ast.Name, depth: int) -> str | None:
        module = self._module
        own_class = module.class_of_self(node)
        if own_class is not None:
            return self._names.class_name(own_class)
        scope, bindings = self._module.bindings(node)
        if scope is None:
            return None
        types = []
        for binding in self._flow.reaching_bindings(node, scope, bindings):
            types.append(self._of_binding(binding, depth))
        return _common(types)

    def _of_binding(self, binding: ast.AST, depth: int) -> str | None:
        module = self._module
        if isinstance(binding, ast.arg):
            return self.of_annotation(binding.annotation)
        if not isinstance(binding, ast.Name):
            return None
        assigned = self._module.assigned_value(binding)
        if assigned is not None:
            return self.of(assigned, depth + 1)
        parent = module.parent(binding)
        if isinstance(parent, ast.AnnAssign):
            return self.of_annotation(parent.annotation)
        if isinstance(parent, ast.withitem):
            return self.of(parent.context_expr, depth + 1)
        if isinstance(parent, (ast.Tuple, ast.List)):
            return self._of_element(binding, parent, depth)
        return None

    def _of_element(
        self, binding: ast.Name, target: ast.Tuple | ast.List, depth: int
    ) -> str | None:
        """``a, b = accelerator.prepare(a, b)``: each keeps its type."""
        statement = self._module.parent(target)
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            return None
        call = statement.value
        index = next(i for i, item in enumerate(target.elts) if item is binding)
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in ("prepare", "setup")
            and index < len(call.args)
        ):
            return self.of(call.args[index], depth + 1)
        return None

    def _of_attribute(self, node: ast.Attribute, depth: int) -> str | None:
        module = self._module
        cls = module.class_of_self(node.value)
        if cls is None:
            return None
        types = [
            self.of(assigned, depth + 1)
            for store in module.attribute_stores(cls, node.attr)
            if (assigned := module.assigned_to_attribute(store)) is not None
        ]
        return _common(types)

    def of_annotation(self, annotation: ast.expr | None) -> str | None:
        """The class an annotation names; ``Optional[X]`` and ``X | None`` are X."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            if re.fullmatch(r"[A-Za-z_][\w.]*", annotation.value):
                return self._names.resolve_dotted(annotation.value)
            return None
        if isinstance(annotation, (ast.Name, ast.Attribute)):
            return self._names.qualified(annotation)
        if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
            sides = [annotation.left, annotation.right]
            named = [
                item
                for item in sides
                if not (isinstance(item, ast.Constant) and item.value is None)
            ]
            return self.of_annotation(named[0]) if len(named) == 1 else None
        if isinstance(annotation, ast.Subscript) and (
            self._names.qualified(annotation.value) == "typing.Optional"
        ):
            return self.of_annotation(annotation.slice)
        return None

    # -- classes

    def is_subclass(self, name: str | None, targets: frozenset[str]) -> bool:
        """See `Module.is_subclass`."""
        return name is not None and not targets.isdisjoint(self.lineage(name))

    def lineage(self, name: str) -> frozenset[str]:
        """A class and all its ancestors that are known, by canonical name."""
        module = self._module
        found: frozenset[str] = module.memoized(
            f"lineage {name}", module.tree, 0, lambda _node, _depth: self._lineage(name)
        )
        return found

    def _lineage(self, name: str) -> frozenset[str]:
        found: set[str] = set()
        pending = [name]
        while pending and len(found) < _MOST_ANCESTORS:
            current = pending.pop()
            if current in found:
                continue
            found.add(current)
            found.update(ancestors_of(current))
            definition = self._names.class_named(current)
            if definition is not None:
                pending += [base for item in definition.bases if (base := self.base_name(item))]
            else:
                pending += self._imports.project_bases(current)
        return frozenset(found)

    def base_name(self, base: ast.expr) -> str | None:
        """Canonical name of a base class expression; ``Generic[T]`` is Generic."""
        if isinstance(base, ast.Subscript):
            base = base.value
        return self._names.qualified(base)


def _loaded_class(owner: str) -> str | None:
    """The class of ``owner.from_pretrained(...)``'s result."""
    package = owner.split(".", 1)[0]
    last = owner.rpartition(".")[2]
    if package in ("transformers", "adapters", "trl", "peft", "auto_gptq", "optimum", "unsloth"):
        if _NOT_MODELS.search(last):
            return owner
        return PRETRAINED_MODEL
    return owner if last[:1].isupper() else None


def _common(types: list[str | None]) -> str | None:
    known = {item for item in types if item is not None}
    return known.pop() if len(known) == 1 else None
