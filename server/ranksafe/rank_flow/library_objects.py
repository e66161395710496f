"""Objects of training libraries: which class of the table of collectives a value belongs to.

``self`` of a LightningModule, ``self.trainer`` in it, the ``trainer`` that a callback is given, a Fabric, a metric, a
subclass of transformers' Trainer: what their methods and properties do stands in the table under the library's class.
"""

from __future__ import annotations

import ast
from functools import cache, lru_cache

from ranksafe.rank_flow.operations import (
    Operation,
    attribute_classes,
    derived_classes,
    operation_named,
    owners,
    table_name,
)
from ranksafe.rank_flow.run import Run
from ranksafe.rank_flow.tables import named
from ranksafe.rank_flow.traces import Event
from ranksafe.rank_flow.values import SAME, Object, Value
from ranksafe.rank_flow.wrapped_by_libraries import ENGINE, engine_kept_in
from ranksafe.semantics.libraries import ancestors_of
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

_CALLBACK = "lightning.pytorch.callbacks.Callback"
_FABRIC = "lightning.fabric.Fabric"
_METRIC = "torchmetrics.Metric"
_HOOK_PARAMETERS = {
    "trainer": "lightning.pytorch.Trainer",
    "pl_module": "lightning.pytorch.LightningModule",
}
"""What Lightning gives a callback's hooks, by the names that its documentation uses."""
_LAUNCHERS = frozenset({"lightning.pytorch.Trainer", "lightning.fabric.Fabric"})
_HAS_OWN_THING = ("accelerate.", "torch.")


def library_object(run: Run, node: ast.Call, name: str) -> Object | None:
    """What a call of a library's class returns."""
    found = _classes(run.module, name)
    for owner in found:
        if owner.startswith(_HAS_OWN_THING):
            continue
        if (owner == _METRIC and _is_local(node)) or (owner in _LAUNCHERS and _is_alone(node)):
            return Object("alone", node=node, module=run.module)
        return Object("library", type=owner, node=node, module=run.module, detail=_detail(node))
    return None


def library_parameter(run: Run, item: ast.arg, type_: str | None) -> Object | None:
    """A parameter that is annotated with a library's class, or that a callback's hook is given."""
    found = () if type_ is None else _classes(run.module, type_)
    if not found and item.arg in named("DeepSpeed engine") and run.module.may_wrap_models:
        found = (ENGINE,)
    if not found and item.arg in named("Fabric") and run.module.may_wrap_models:
        found = (_FABRIC,)
    receiver = run.frame.receiver
    if not found and receiver is not None and item.arg in _HOOK_PARAMETERS:
        if _CALLBACK in _classes_of(receiver):
            found = (_HOOK_PARAMETERS[item.arg],)
    for owner in found:
        if not owner.startswith(_HAS_OWN_THING):
            kind = "wrapped" if owner == ENGINE else "library"
            detail = "engine" if kind == "wrapped" else None
            return Object(kind, type=owner, node=item, module=run.module, detail=detail)
    return None


def library_annotated(run: Run, node: ast.AnnAssign) -> Object | None:
    """What ``trainer: Trainer = instantiate(config)`` assigns."""
    module = run.module
    type_ = module.types.of_annotation(node.annotation)
    for owner in () if type_ is None else _classes(module, type_):
        if not owner.startswith(_HAS_OWN_THING) and owner != _METRIC:
            return Object("library", type=owner, node=node, module=module)
    return None


def _classes_of(thing: Object) -> tuple[str, ...]:
    """The classes of the table that an object belongs to."""
    if thing.kind in ("library", "wrapped", "accelerator"):
        return (thing.type,) if thing.type else ()
    if thing.kind != "object" or thing.module is None or not thing.type:
        return ()
    return _classes(thing.module, thing.type)


def _classes(module: Module, name: str) -> tuple[str, ...]:
    return _owners_of(module.types.lineage(name))


@lru_cache(4_096)
def _owners_of(lineage: frozenset[str]) -> tuple[str, ...]:
    known = (name for cls in sorted(lineage) for name in (cls, *ancestors_of(cls)))
    return tuple(dict.fromkeys(owner for name in known if (owner := _owner(name)) is not None))


def method_name(run: Run, thing: Object, attribute: str) -> str | None:
    """The table's name of a method that an object has from a library; None where the project has its own."""
    if thing.kind == "object":
        if run.attribute(thing, attribute) is not None:
            return None
        if run.functions.method(thing, attribute) is not None:
            return _wrapped_compute(thing, attribute)
    return _member(_classes_of(thing), attribute)


def _wrapped_compute(thing: Object, attribute: str) -> str | None:
    """A metric's own ``compute``, which its base class wraps in the synchronisation."""
    if attribute != "compute" or thing.module is None or thing.node is None:
        return None
    if "sync_on_compute" in thing.module.text_of(thing.node):
        return None
    return f"{_METRIC}.compute" if _METRIC in _classes_of(thing) else None


def method_of_type(run: Run, type_: str, attribute: str) -> str | None:
    """The same for an object of which only its class is known."""
    module = run.module
    definition = module.class_named(type_)
    if definition is not None:
        thing = Object("object", type=type_, node=definition, module=module)
        return method_name(run, thing, attribute)
    found = _member(_classes(module, type_), attribute)
    # Whether a metric synchronises is told where it is made, and that is not seen here.
    return None if found is not None and found.startswith(_METRIC) else found


def method_of_super(run: Run, function: ast.Attribute) -> str | None:
    """``super().evaluate()`` in a class whose other bases in the project do not define it."""
    call, module = function.value, run.module
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    if not isinstance(call.func, ast.Name) or call.func.id != "super":
        return None
    method = module.enclosing_function(function)
    cls = None if method is None else module.parent(method)
    if not isinstance(cls, ast.ClassDef):
        return None
    for base in cls.bases:
        found = run.functions.named(module, base)
        if found is not None and found.kind == "class":
            inner = Object("object", type=found.type, node=found.node, module=found.module)
            if run.functions.method(inner, function.attr) is not None:
                return None
    return _member(_classes(module, module.class_name(cls)), function.attr)


def _member(classes: tuple[str, ...], attribute: str) -> str | None:
    for owner in classes:
        name = f"{owner}.{attribute}"
        if operation_named(name) is not None:
            return name
    return None


def library_attribute(run: Run, base: Object, node: ast.Attribute) -> Value | None:
    """An attribute of a library's object: another one of its objects, or a property that communicates."""
    classes = _classes_of(base)
    name = _member(classes, node.attr)
    operation: Operation | None = None if name is None else operation_named(name)
    if operation is not None and operation.is_property:
        run.items.append(Event(operation, run.place(node)))
        return SAME
    if base.kind == "object" and isinstance(base.node, ast.ClassDef) and base.module is not None:
        engine = engine_kept_in(base.module, base.node, node.attr)
        if engine is not None:
            run.set_attribute(base, node.attr, engine)
            return engine
    for owner in classes:
        type_ = attribute_classes().get(f"{owner}.{node.attr}")
        if type_ is not None:
            kind = "accelerator" if type_ == "accelerate.Accelerator" else "library"
            return Object(kind, type=type_, node=node, module=run.module, detail=base.detail)
    return None


def library_answer(run: Run, thing: Object, node: ast.Call, word: str) -> Value | None:
    """``trainer.is_world_process_zero()``: what a library's method says of the rank."""
    if not _classes_of(thing):
        return None
    return run.by_word(word, node)


@cache
def _owner(name: str) -> str | None:
    """The class of the table that a library's class is or derives from."""
    known = table_name(f"{name}.")[:-1]
    if known in owners():
        return known
    exact = derived_classes().get(known)
    if exact is not None:
        return exact
    package, _, last = known.rpartition(".")
    while package and last[:1].isupper():
        found = derived_classes().get(f"{package}.*")
        if found is not None:
            return found
        package = package.rpartition(".")[0]
    return None


def _is_local(node: ast.Call) -> bool:
    """Whether a metric is told not to synchronise in ``compute``."""
    return any(
        item.arg in ("sync_on_compute", "distributed_available_fn") for item in node.keywords
    )


def _is_alone(node: ast.Call) -> bool:
    """Whether a Trainer or a Fabric is made for one device."""
    given = {item.arg: item.value for item in node.keywords}
    devices = given.get("devices", given.get("gpus"))
    nodes = given.get("num_nodes")
    if devices is None or (nodes is not None and not _is_one(nodes)):
        return False
    return _is_one(devices)


def _is_one(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in (1, "1")
    return isinstance(node, ast.List) and len(node.elts) == 1


def _detail(node: ast.Call) -> str | None:
    """How a Fabric or a Trainer shards models: ``fsdp``, ``zero3``, or None."""
    for keyword in node.keywords:
        if keyword.arg == "strategy":
            written = unparsed(keyword.value).lower()
            if "fsdp" in written:
                return "fsdp"
            if "deepspeed" in written:
                return "zero3" if "stage_3" in written or "stage=3" in written else "engine"
    return None
